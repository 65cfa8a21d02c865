// Traces and runs as they are drawn. Where their columns come from (a page, a snapshot) is known to
// the source that loads them.

const NEVER = 4294967295;

// Requests of a trace, the same for all its runs.
class Trace {
  constructor(number, facts, source, ops) {
    Object.assign(this, facts);
    this.number = number;
    this.source = source;
    this.ops = ops;
    this.last = Math.max(0, facts.events - 1);
    this.runs = facts.runs.map((run, i) => new Run(this, i, run));
  }

  // Once, whoever asks first.
  load() {
    this.loading = this.loading || this.source.loadTrace(this).then(() => this.index());
    return this.loading;
  }

  // What follows from the columns: begin, free, bytes, site, stream, pool of each request; op and
  // detail of each event; times, where there are any; frames, sites, marks.
  index() {
    this.requestAt = new Uint32Array(this.events).fill(NEVER);
    this.freedAt = new Uint32Array(this.events).fill(NEVER);
    for (let i = 0; i < this.requests; i++) {
      this.requestAt[this.begin[i]] = i;
      if (this.free[i] !== NEVER && this.free[i] !== this.begin[i]) this.freedAt[this.free[i]] = i;
    }
    this.markAt = new Map(this.marks.map((mark) => [mark[0], mark]));
    this.hasStacks = this.site.some((site) => site !== 0);
    this.groups = new Groups(this, this.hasStacks ? 'site' : 'size');
    this.otherGroups = new Map();
  }

  // A page says what each call site asks memory for; a snapshot that was opened beside it does not.
  get hasPurposes() {
    return this.hasStacks && this.purposes !== undefined;
  }

  // Requests by 'stack' or 'purpose', made when they are first asked for; by call site for all others.
  groupsBy(kind) {
    const has = kind === 'stack' ? this.hasStacks : kind === 'purpose' && this.hasPurposes;
    if (!has) return this.groups;
    if (!this.otherGroups.has(kind)) this.otherGroups.set(kind, new Groups(this, kind));
    return this.otherGroups.get(kind);
  }

  frameText(frame) {
    return this.frames[frame][0];
  }

  siteName(site) {
    const named = this.sites[site][0];
    return named === 0 ? 'without a call stack' : this.frameText(named - 1);
  }

  // Frames of a request, innermost first.
  stackOf(request) {
    return this.sites[this.site[request]].slice(1);
  }
}

const GROUP_KINDS = ['site', 'stack', 'purpose'];

// Requests by who asked: call sites of one name, whole stacks, what they are for, or, where the
// recording has no call stacks, sizes. Group 0 is the first that asked.
class Groups {
  constructor(trace, kind) {
    this.kind = kind;
    this.of = new Uint32Array(trace.requests);
    this.names = [];
    this.sample = []; // a request of each
    const byKey = new Map(); // site or size
    const byName = new Map();
    const keys = kind === 'size' ? trace.bytes : trace.site;
    for (let i = 0; i < trace.requests; i++) {
      let group = byKey.get(keys[i]);
      if (group === undefined) byKey.set(keys[i], group = this.numberOf(trace, i, byName));
      this.of[i] = group;
    }
    this.findPeaks(trace);
  }

  get isBySite() {
    return this.kind !== 'size';
  }

  numberOf(trace, request, byName) {
    const site = trace.site[request];
    const name = this.nameOf(trace, request, site);
    if ((this.kind === 'site' || this.kind === 'purpose') && byName.has(name)) return byName.get(name);
    byName.set(name, this.names.length);
    this.names.push(name);
    this.sample.push(request);
    return this.names.length - 1;
  }

  nameOf(trace, request, site) {
    switch (this.kind) {
      case 'size': return `blocks of ${bytesText(trace.bytes[request])}`;
      case 'stack': return `${trace.siteName(site)} (stack ${site})`;
      case 'purpose': return trace.purpose_names[trace.purposes[site]];
      default: return trace.siteName(site);
    }
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
    this.peaks = peaks;
  }
}

// A run's columns: request, begin, end, address, bytes, rounded of each block that was served;
// begin, end, address, bytes, stream, pool, isMapped of each segment; reserved bytes at each event.
class Run {
  constructor(trace, number, facts) {
    Object.assign(this, facts);
    this.trace = trace;
    this.number = number;
    this.last = Math.max(0, (facts.events || 1) - 1);
  }

  load() {
    this.loading = this.loading || this.trace.source.loadRun(this).then(() => {
      this.reservedExtremes = new Extremes(this.reserved);
      this.isLoaded = true;
    });
    return this.loading;
  }

  // What only the run that is looked at needs.
  prepare() {
    if (this.blocks !== undefined) return;
    const { events } = this.trace;
    this.makeLevels();
    this.blocks = new Intervals(this.begin, this.end, this.address, events);
    this.pieces = new Intervals(this.segmentBegin, this.segmentEnd, this.segmentAddress, events);
    this.ranges = mergeRanges(this.segmentAddress, this.segmentBytes);
    this.calls = new SegmentCalls(this);
  }

  // Requested bytes, and those of blocks (in use or waiting for a stream), right after each event.
  makeLevels() {
    const { free, bytes } = this.trace;
    const requested = new Float64Array(this.last + 1);
    const active = new Float64Array(this.last + 1);
    for (let i = 0; i < this.request.length; i++) {
      const request = this.request[i];
      active[this.begin[i]] += this.bytes[i];
      if (this.end[i] <= this.last) active[this.end[i]] -= this.bytes[i];
      if (free[request] === this.begin[i]) continue;
      requested[this.begin[i]] += bytes[request];
      if (free[request] <= this.last) requested[free[request]] -= bytes[request];
    }
    for (let i = 1; i < requested.length; i++) {
      requested[i] += requested[i - 1];
      active[i] += active[i - 1];
    }
    this.requested = requested;
    this.requestedExtremes = new Extremes(requested);
    this.active = active;
    this.activeExtremes = new Extremes(active);
  }

  // Which of this run's blocks a request got, or -1.
  blockOf(request) {
    const at = firstAbove(this.request, request) - 1;
    return at >= 0 && this.request[at] === request ? at : -1;
  }

  isWaiting(block, event) {
    return this.trace.free[this.request[block]] <= event;
  }

  stateAt(event) {
    return new State(this, Math.min(event, this.last));
  }
}

// What the policy asked of its device at each event: segments (or mapped pieces) taken and given back.
class SegmentCalls {
  constructor(run) {
    this.taken = new Map();
    this.given = new Map();
    run.segmentBegin.forEach((event, i) => this.add(this.taken, event, run.segmentBytes[i]));
    run.segmentEnd.forEach((event, i) => this.add(this.given, event, run.segmentBytes[i]));
  }

  add(calls, event, bytes) {
    const call = calls.get(event);
    if (call === undefined) calls.set(event, { bytes, count: 1 });
    else {
      call.bytes += bytes;
      call.count++;
    }
  }

  textAt(event) {
    const say = (call, sign) => (call === undefined ? [] :
      [`${sign}${bytesText(call.bytes)} reserved${call.count > 1 ? ` in ${countText(call.count)}` : ''}`]);
    return [...say(this.taken.get(event), '+'), ...say(this.given.get(event), '−')].join(', ');
  }
}

// Address ranges that some segment covered at some time, in order, each with the bytes before it.
function mergeRanges(addresses, bytes) {
  const ranges = [];
  for (const i of sortedIndex(addresses)) {
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
