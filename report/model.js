// Traces and runs as they are drawn, and the state of a run at one event.

const NEVER = 4294967295;

// Requests of a trace, the same for all its runs.
class Trace {
  constructor(number, facts) {
    Object.assign(this, facts);
    this.number = number;
    this.last = Math.max(0, facts.events - 1);
    this.runs = facts.runs.map((run, i) => new Run(this, i, run));
  }

  // Once, whoever asks first.
  load() {
    this.loading = this.loading || this.unpack();
    return this.loading;
  }

  async unpack() {
    const count = this.requests;
    const reader = new ColumnReader(await inflate(`data-${this.number}-trace-0`));
    this.begin = reader.steps(count, Uint32Array);
    const lives = reader.plain(count, Float64Array);
    this.free = new Uint32Array(count);
    for (let i = 0; i < count; i++) this.free[i] = lives[i] === 0 ? NEVER : this.begin[i] + lives[i] - 1;
    this.bytes = reader.plain(count, Float64Array);
    this.site = reader.plain(count, Uint32Array);
    this.stream = reader.plain(count, Uint16Array);
    this.pool = reader.plain(count, Uint32Array);
    if (this.has_times) this.times = this.readTimes(reader);
    this.requestAt = new Uint32Array(this.events).fill(NEVER);
    this.freedAt = new Uint32Array(this.events).fill(NEVER);
    for (let i = 0; i < count; i++) {
      this.requestAt[this.begin[i]] = i;
      if (this.free[i] !== NEVER && this.free[i] !== this.begin[i]) this.freedAt[this.free[i]] = i;
    }
    this.markAt = new Map(this.marks.map((mark) => [mark[0], mark]));
    this.groups = new Groups(this);
  }

  readTimes(reader) {
    const times = reader.plain(this.events, Float64Array);
    for (let i = 1; i < times.length; i++) times[i] += times[i - 1];
    return times;
  }
}

// Who asks: call sites of one name, or, where the recording has no call stacks, requests of one
// size. Group 0 is the first that asked.
class Groups {
  constructor(trace) {
    this.isBySite = trace.site.some((site) => site !== 0);
    this.of = new Uint32Array(trace.requests);
    this.names = [];
    this.frames = [];
    const byKey = new Map(); // site or size
    const byName = new Map();
    const keys = this.isBySite ? trace.site : trace.bytes;
    for (let i = 0; i < trace.requests; i++) {
      let group = byKey.get(keys[i]);
      if (group === undefined) byKey.set(keys[i], group = this.numberOf(keys[i], byName, trace));
      this.of[i] = group;
    }
    this.peaks = this.findPeaks(trace);
  }

  numberOf(key, byName, trace) {
    const name = this.isBySite ? trace.sites[key][0] : `blocks of ${bytesText(key)}`;
    const isNew = !this.isBySite || !byName.has(name);
    if (!isNew) return byName.get(name);
    byName.set(name, this.names.length);
    this.names.push(name);
    this.frames.push(this.isBySite ? trace.sites[key].slice(1) : []);
    return this.names.length - 1;
  }

  // The most that each held, whenever that was.
  findPeaks(trace) {
    const held = new Float64Array(this.names.length);
    const peaks = new Float64Array(this.names.length);
    for (let event = 0; event < trace.events; event++) {
      const freed = trace.freedAt[event];
      const asked = trace.requestAt[event];
      if (freed !== NEVER) held[this.of[freed]] -= trace.bytes[freed];
      if (asked === NEVER || trace.free[asked] === event) continue;
      const group = this.of[asked];
      held[group] += trace.bytes[asked];
      if (held[group] > peaks[group]) peaks[group] = held[group];
    }
    return peaks;
  }
}

class Run {
  constructor(trace, number, facts) {
    Object.assign(this, facts);
    this.trace = trace;
    this.number = number;
    this.last = Math.max(0, (facts.events || 1) - 1);
  }

  load() {
    this.loading = this.loading || this.unpack();
    return this.loading;
  }

  async unpack() {
    const count = this.trace.requests;
    const reader = new ColumnReader(await inflate(`data-${this.trace.number}-run-${this.number}`));
    const isServed = reader.plain(count, Uint8Array);
    let served = 0;
    this.request = new Uint32Array(count);
    for (let i = 0; i < count; i++) if (isServed[i] === 1) this.request[served++] = i;
    this.request = this.request.subarray(0, served);
    this.readBlocks(reader, this.request.length);
    this.readSegments(reader);
    this.makeReserved(reader);
    this.isLoaded = true;
  }

  // What only the run that is looked at needs.
  prepare() {
    if (this.blocks !== undefined) return;
    this.makeRequested();
    this.blocks = new Intervals(this.begin, this.end, this.trace.events);
    this.pieces = new Intervals(this.segmentBegin, this.segmentEnd, this.trace.events);
    this.ranges = mergeRanges(this.segmentAddress, this.segmentBytes);
  }

  readBlocks(reader, count) {
    const { begin, free, bytes } = this.trace;
    const scale = 2 ** this.shift;
    this.address = reader.steps(count, Float64Array);
    for (let i = 0; i < count; i++) this.address[i] *= scale;
    this.bytes = reader.plain(count, Float64Array);
    this.rounded = reader.plain(count, Float64Array);
    const waits = reader.plain(count, Float64Array);
    this.begin = new Uint32Array(count);
    this.end = new Uint32Array(count);
    for (let i = 0; i < count; i++) {
      const request = this.request[i];
      this.begin[i] = begin[request];
      this.bytes[i] += bytes[request];
      this.rounded[i] += bytes[request];
      this.end[i] = this.endOf(free[request], waits[i]);
    }
  }

  endOf(free, wait) {
    if (free === NEVER || free > this.last || wait === 1) return NEVER;
    return wait === 0 ? free : free + wait - 1;
  }

  readSegments(reader) {
    const count = this.segments;
    this.segmentBegin = reader.steps(count, Uint32Array);
    const lives = reader.plain(count, Float64Array);
    this.segmentEnd = new Uint32Array(count);
    for (let i = 0; i < count; i++)
      this.segmentEnd[i] = lives[i] === 0 ? NEVER : this.segmentBegin[i] + lives[i] - 1;
    this.segmentAddress = reader.steps(count, Float64Array);
    this.segmentBytes = reader.plain(count, Float64Array);
    this.segmentStream = reader.plain(count, Uint16Array);
    this.segmentPool = reader.plain(count, Uint32Array);
    this.segmentIsMapped = reader.plain(count, Uint8Array);
  }

  makeReserved(reader) {
    const events = reader.steps(this.steps, Float64Array);
    const levels = reader.steps(this.steps, Float64Array);
    this.reserved = new Float64Array(this.last + 1);
    for (let i = 0; i < this.steps; i++)
      this.reserved.fill(levels[i], events[i], i + 1 < this.steps ? events[i + 1] : this.last + 1);
    this.reservedExtremes = new Extremes(this.reserved);
  }

  makeRequested() {
    const { free, bytes } = this.trace;
    const requested = new Float64Array(this.last + 1);
    for (let i = 0; i < this.request.length; i++) {
      const request = this.request[i];
      if (free[request] === this.begin[i]) continue;
      requested[this.begin[i]] += bytes[request];
      if (free[request] <= this.last) requested[free[request]] -= bytes[request];
    }
    for (let i = 1; i < requested.length; i++) requested[i] += requested[i - 1];
    this.requested = requested;
    this.requestedExtremes = new Extremes(requested);
  }

  // Which of this run's blocks a request got, or -1.
  blockOf(request) {
    let low = 0;
    let high = this.request.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.request[middle] < request) low = middle + 1;
      else high = middle;
    }
    return this.request[low] === request ? low : -1;
  }

  isWaiting(block, event) {
    return this.trace.free[this.request[block]] <= event;
  }

  stateAt(event) {
    return new State(this, Math.min(event, this.last));
  }
}

// Address ranges that some segment covered at some time, in order, each with the bytes before it.
function mergeRanges(addresses, bytes) {
  const order = Uint32Array.from(addresses.keys()).sort((a, b) => addresses[a] - addresses[b]);
  const ranges = [];
  for (const i of order) {
    const last = ranges[ranges.length - 1];
    const end = addresses[i] + bytes[i];
    if (last === undefined || addresses[i] > last.end) ranges.push({ address: addresses[i], end, offset: 0 });
    else if (end > last.end) last.end = end;
  }
  let offset = 0;
  for (const range of ranges) {
    range.offset = offset;
    offset += range.end - range.address;
  }
  return ranges;
}

// What a run holds right after one event: segments and blocks by address, holes, and the parts that
// reserved bytes are made of.
class State {
  constructor(run, event) {
    this.run = run;
    this.event = event;
    this.reserved = run.reserved[event];
    this.requested = run.requested[event];
    this.blocks = run.blocks.at(event).sort((a, b) => run.address[a] - run.address[b]);
    this.segments = this.joinPieces(run.pieces.at(event));
    this.fillSegments();
    this.sumUp();
  }

  // Mapped pieces that touch each other are one segment that has grown, where the policy does that.
  joinPieces(pieces) {
    const run = this.run;
    const segments = [];
    pieces.sort((a, b) => run.segmentAddress[a] - run.segmentAddress[b]);
    for (const piece of pieces) {
      const address = run.segmentAddress[piece];
      const last = segments[segments.length - 1];
      const isMapped = run.is_grown && run.segmentIsMapped[piece] === 1;
      if (last !== undefined && isMapped && last.isMapped && last.end === address &&
          last.stream === run.segmentStream[piece] && last.pool === run.segmentPool[piece]) {
        last.end += run.segmentBytes[piece];
        continue;
      }
      segments.push({ address, end: address + run.segmentBytes[piece], isMapped, stream: run.segmentStream[piece],
        pool: run.segmentPool[piece], begin: run.segmentBegin[piece], holes: [], free: 0, blockCount: 0 });
    }
    return segments;
  }

  fillSegments() {
    const run = this.run;
    let next = 0;
    for (const segment of this.segments) {
      let at = segment.address;
      for (; next < this.blocks.length && run.address[this.blocks[next]] < segment.end; next++) {
        const block = this.blocks[next];
        if (run.address[block] < segment.address) continue;
        this.addHole(segment, at, run.address[block]);
        segment.blockCount++;
        at = run.address[block] + run.bytes[block];
      }
      this.addHole(segment, at, segment.end);
    }
  }

  addHole(segment, address, end) {
    if (end <= address) return;
    segment.holes.push({ address, end });
    segment.free += end - address;
  }

  sumUp() {
    const run = this.run;
    const parts = { requested: 0, rounding: 0, unsplit: 0, holes: 0, cached: 0, waiting: 0 };
    this.largestHole = 0;
    this.holeCount = 0;
    this.waitingCount = 0;
    for (const block of this.blocks) {
      if (run.isWaiting(block, this.event)) {
        parts.waiting += run.bytes[block];
        this.waitingCount++;
        continue;
      }
      const asked = run.trace.bytes[run.request[block]];
      parts.requested += asked;
      parts.rounding += run.rounded[block] - asked;
      parts.unsplit += run.bytes[block] - run.rounded[block];
    }
    for (const segment of this.segments) {
      parts[segment.blockCount > 0 ? 'holes' : 'cached'] += segment.free;
      this.holeCount += segment.holes.length;
      for (const hole of segment.holes) this.largestHole = Math.max(this.largestHole, hole.end - hole.address);
    }
    this.parts = parts;
    this.free = parts.holes + parts.cached;
    this.allocated = parts.requested + parts.rounding + parts.unsplit;
  }
}
