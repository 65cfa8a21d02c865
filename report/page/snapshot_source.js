// Traces from a snapshot of torch.cuda.memory, as its allocator ran: one for each device. Nothing is
// replayed; the policy is called "as recorded".
//
// What was there before the history began shows in what is freed without having been requested, and in
// the blocks and segments at the end that no event made.

const SNAPSHOT_OPS = ['alloc', 'free', 'complete', 'segment_alloc', 'segment_free', 'segment_map', 'segment_unmap', 'oom', 'mark'];
const SNAPSHOT_LIMIT = 20000000; // events of a device
const TORCH_ROUND = 512; // block bytes are multiples of it

// A value of a dictionary of a pickle (a Map) or of JSON (an object).
function field(item, name) {
  if (item instanceof Map) return item.get(name);
  return item !== null && typeof item === 'object' && Object.prototype.hasOwnProperty.call(item, name) ? item[name] : undefined;
}

function listField(item, name) {
  const value = field(item, name);
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new Error(`its '${name}' is no list`);
  return value;
}

function bytesField(item, name, where) {
  const value = field(item, name);
  if (!Number.isFinite(value) || value < 0 || value > Number.MAX_SAFE_INTEGER)
    throw new Error(`${where}: '${name}' is ${String(value).slice(0, 40)}; expected a number of bytes or an address`);
  return value;
}

// Frames and stacks by number, each text once.
class StackTable {
  constructor() {
    this.frames = [];
    this.sites = [[0]];
    this.frameOf = new Map(); // object of the file, or its text
    this.siteOf = new Map();
  }

  frame(item) {
    const known = this.frameOf.get(item);
    if (known !== undefined) return known;
    const [file, line, name] = ['filename', 'line', 'name'].map((key) => String(field(item, key) === undefined ? '' : field(item, key)));
    const key = `${file}:${line} ${name}`;
    let number = this.frameOf.get(key);
    if (number === undefined) {
      this.frameOf.set(key, number = this.frames.length);
      this.frames.push([`${file.slice(file.lastIndexOf('/') + 1)}:${line} ${name}`, file]);
    }
    this.frameOf.set(item, number);
    return number;
  }

  site(frames) {
    if (!Array.isArray(frames) || frames.length === 0) return 0;
    const numbers = frames.map((frame) => this.frame(frame));
    const key = numbers.join(',');
    let site = this.siteOf.get(key);
    if (site === undefined) {
      this.siteOf.set(key, site = this.sites.length);
      this.sites.push([this.named(numbers) + 1, ...numbers]);
    }
    return site;
  }

  // The innermost line of the user's own Python, else of any Python, else the innermost whose file is known.
  named(numbers) {
    const file = (frame) => this.frames[frame][1];
    const rules = [
      (frame) => file(frame).endsWith('.py') && !/(^|\/)(site-packages|dist-packages|torch|lib\/python[0-9.]+)\//.test(file(frame)),
      (frame) => file(frame).endsWith('.py'),
      (frame) => file(frame) !== '' && file(frame) !== '??',
      () => true,
    ];
    return numbers.find(rules.find((rule) => numbers.some(rule)));
  }
}

// Numbers for handles, in order of first use.
class NameTable {
  constructor(names) {
    this.names = names;
    this.numbers = new Map(names.map((name, i) => [name, i]));
  }

  number(name) {
    let number = this.numbers.get(name);
    if (number === undefined) {
      this.numbers.set(name, number = this.names.length);
      this.names.push(name);
    }
    return number;
  }
}

// What one device's history and last state tell, event by event.
class SnapshotDevice {
  constructor(snapshot, device, stacks) {
    this.device = device;
    this.stacks = stacks;
    this.entries = listField(snapshot, 'device_traces')[device] || [];
    if (!Array.isArray(this.entries)) throw new Error(`the history of device ${device} is no list`);
    this.segments = listField(snapshot, 'segments').filter((one) => (field(one, 'device') || 0) === device);
    if (this.entries.length > SNAPSHOT_LIMIT) throw new Error(`device ${device} has ${this.entries.length} events; a page can show ${SNAPSHOT_LIMIT}`);
    this.streams = new NameTable(['0x0']);
    this.pools = new NameTable(['0:0']);
    this.requests = [];
    this.live = new Map(); // by address
    this.pieces = [];
    this.open = new Map(); // pieces by address
    this.earlier = []; // requests from before the history
    this.earlierPieces = [];
    this.marks = [];
    this.readEntries();
    this.readEnd(snapshot);
  }

  stream(item) {
    const handle = field(item, 'stream');
    return this.streams.number(`0x${(Number.isFinite(handle) ? handle : 0).toString(16)}`);
  }

  readEntries() {
    this.ops = new Uint8Array(this.entries.length);
    this.detail = new Map();
    this.entries.forEach((entry, i) => {
      const action = field(entry, 'action');
      const name = SNAPSHOT_ACTIONS[action] || 'mark';
      this.ops[i] = SNAPSHOT_OPS.indexOf(name);
      if (SNAPSHOT_ACTIONS[action] === undefined) this.marks.push([i, 'mark', String(action)]);
      else SNAPSHOT_READERS[name](this, entry, i, `event ${i} of device ${this.device}`);
    });
  }

  // ---- blocks

  alloc(entry, event, where) {
    const address = bytesField(entry, 'addr', where);
    const bytes = bytesField(entry, 'size', where);
    const before = this.live.get(address);
    if (before !== undefined) before.end = before.end === NEVER ? event : before.end;
    const request = { begin: event, free: NEVER, end: NEVER, address, bytes, block: Math.max(TORCH_ROUND, Math.ceil(bytes / TORCH_ROUND) * TORCH_ROUND),
      site: this.stacks.site(field(entry, 'frames')), stream: this.stream(entry) };
    this.requests.push(request);
    this.live.set(address, request);
  }

  // The request at an address; one that nobody saw begin was there before the history.
  held(entry, where) {
    const address = bytesField(entry, 'addr', where);
    const known = this.live.get(address);
    if (known !== undefined) return known;
    const bytes = bytesField(entry, 'size', where);
    const request = { free: NEVER, end: NEVER, address, bytes, block: Math.max(TORCH_ROUND, Math.ceil(bytes / TORCH_ROUND) * TORCH_ROUND),
      site: 0, stream: this.stream(entry) };
    this.earlier.push(request);
    this.live.set(address, request);
    return request;
  }

  requestFree(entry, event, where) {
    const request = this.held(entry, where);
    if (request.free === NEVER) request.free = event;
  }

  complete(entry, event, where) {
    const request = this.held(entry, where);
    if (request.free === NEVER) request.free = event;
    request.end = event;
    this.completes = this.completes || [];
    this.completes.push([event, request]);
    this.live.delete(request.address);
  }

  // ---- segments, and mapped pieces of those that grow

  take(entry, event, where, isMapped) {
    const address = bytesField(entry, 'addr', where);
    const bytes = bytesField(entry, 'size', where);
    const piece = { begin: event, end: NEVER, address, bytes, stream: this.stream(entry), pool: 0, isMapped };
    this.detail.set(event, bytes);
    this.pieces.push(piece);
    this.open.set(address, piece);
  }

  give(entry, event, where, isMapped) {
    const address = bytesField(entry, 'addr', where);
    const bytes = bytesField(entry, 'size', where);
    this.detail.set(event, bytes);
    for (const [from, end] of this.cut(address, address + bytes, event))
      this.earlierPieces.push({ end: event, address: from, bytes: end - from, stream: this.stream(entry), pool: 0, isMapped });
  }

  // Closes what is open of a range; what sticks out at its sides stays. Answers the ranges that nobody took.
  cut(address, end, event) {
    const inside = Array.from(this.open.values()).filter((one) => one.address < end && one.address + one.bytes > address)
      .sort((a, b) => a.address - b.address);
    const missing = [];
    let at = address;
    for (const piece of inside) {
      if (piece.address > at) missing.push([at, piece.address]);
      at = Math.max(at, piece.address + piece.bytes);
      this.close(piece, address, end, event);
    }
    if (at < end) missing.push([at, end]);
    return missing;
  }

  close(piece, address, end, event) {
    const pieceEnd = piece.address + piece.bytes;
    this.open.delete(piece.address);
    piece.end = event;
    for (const [from, to] of [[piece.address, address], [end, pieceEnd]]) {
      if (from >= to) continue;
      const rest = { ...piece, begin: event, end: NEVER, address: from, bytes: to - from };
      this.pieces.push(rest);
      this.open.set(from, rest);
    }
  }

  // ---- the state at the end

  readEnd(snapshot) {
    for (const segment of this.segments) this.readSegment(segment);
    for (const note of listField(snapshot, 'external_annotations')) this.readNote(note);
  }

  readSegment(segment) {
    const where = `a segment of device ${this.device}`;
    const address = bytesField(segment, 'address', where);
    const bytes = bytesField(segment, 'total_size', where);
    const id = listField(segment, 'segment_pool_id');
    const pool = this.pools.number(`${id[0] || 0}:${id[1] || 0}`);
    const isMapped = field(segment, 'is_expandable') === true;
    let at = address;
    const open = Array.from(this.open.values()).filter((one) => one.address < address + bytes && one.address + one.bytes > address)
      .sort((a, b) => a.address - b.address);
    const before = (from, end) => this.earlierPieces.push({ end: NEVER, address: from, bytes: end - from, stream: this.stream(segment), pool, isMapped });
    for (const piece of open) {
      piece.pool = pool;
      if (piece.address > at) before(at, piece.address);
      at = Math.max(at, piece.address + piece.bytes);
    }
    if (at < address + bytes) before(at, address + bytes);
    this.readBlocks(segment, address, pool);
  }

  readBlocks(segment, segmentAddress, pool) {
    let at = segmentAddress;
    for (const block of listField(segment, 'blocks')) {
      const bytes = bytesField(block, 'size', 'a block');
      const address = Number.isFinite(field(block, 'address')) ? field(block, 'address') : at;
      at = address + bytes;
      const state = String(field(block, 'state'));
      if (!state.startsWith('active')) continue;
      const known = this.live.get(address);
      if (known !== undefined) Object.assign(known, { block: Math.max(bytes, known.bytes), pool });
      else this.addEarlier(block, address, bytes, segment, pool);
    }
  }

  addEarlier(block, address, bytes, segment, pool) {
    const requested = field(block, 'requested_size');
    const request = { free: NEVER, end: NEVER, address, bytes: Number.isFinite(requested) && requested <= bytes ? requested : bytes,
      block: bytes, site: this.stacks.site(field(block, 'frames')), stream: this.stream(segment), pool };
    this.live.set(address, request);
    this.earlier.push(request);
  }

  // Annotations have a time: they belong to the first event at or after it.
  readNote(note) {
    const time = field(note, 'time_us');
    if ((field(note, 'device') || 0) !== this.device || !Number.isFinite(time)) return;
    const event = this.entries.findIndex((entry) => field(entry, 'time_us') >= time);
    const kind = { START: 'begin', END: 'end' }[field(note, 'stage')] || 'mark';
    if (event >= 0) this.marks.push([event, kind, String(field(note, 'name'))]);
  }
}

const SNAPSHOT_ACTIONS = { alloc: 'alloc', free_requested: 'free', free_completed: 'complete', segment_alloc: 'segment_alloc',
  segment_free: 'segment_free', segment_map: 'segment_map', segment_unmap: 'segment_unmap', oom: 'oom' };
const SNAPSHOT_READERS = {
  alloc: (device, ...entry) => device.alloc(...entry),
  free: (device, ...entry) => device.requestFree(...entry),
  complete: (device, ...entry) => device.complete(...entry),
  segment_alloc: (device, ...entry) => device.take(...entry, false),
  segment_free: (device, ...entry) => device.give(...entry, false),
  segment_map: (device, ...entry) => device.take(...entry, true),
  segment_unmap: (device, ...entry) => device.give(...entry, true),
  oom: (device, entry, event) => device.marks.push([event, 'recorded oom', null]),
};

// Traces and runs out of what the devices tell. Requests from before the history stand in front, an event each.
class SnapshotSource {
  constructor(value, name) {
    // The list of torch.cuda.memory_snapshot() is a state without a history.
    const snapshot = Array.isArray(value) ? { segments: value } : value;
    if (listField(snapshot, 'device_traces').length === 0 && listField(snapshot, 'segments').length === 0)
      throw new Error("it has neither 'segments' nor 'device_traces'; expected a snapshot of torch.cuda.memory");
    const count = Math.max(listField(snapshot, 'device_traces').length,
      ...listField(snapshot, 'segments').map((one) => (Number(field(one, 'device')) || 0) + 1).filter((one) => one <= 4096));
    this.stacks = new StackTable();
    this.devices = [];
    for (let i = 0; i < count; i++) {
      const device = new SnapshotDevice(snapshot, i, this.stacks);
      if (device.requests.length + device.earlier.length + device.earlierPieces.length + device.pieces.length > 0) this.devices.push(device);
    }
    if (this.devices.length === 0) throw new Error('it holds no event and no segment: nothing was recorded');
    this.name = name;
    this.main = this.mainDevice();
  }

  // The device with the greatest peak of requested bytes, as in the program (frag_recording_main_trace).
  mainDevice() {
    const peaks = this.devices.map((device) => {
      const changes = new Float64Array(device.entries.length + 2);
      for (const one of [...device.earlier, ...device.requests]) {
        changes[one.begin === undefined ? 0 : one.begin + 1] += one.bytes;
        if (one.free !== NEVER) changes[one.free + 1] -= one.bytes;
      }
      let held = 0;
      let most = 0;
      for (const by of changes) most = Math.max(most, held += by);
      return most;
    });
    return this.devices[peaks.indexOf(Math.max(...peaks))];
  }

  traces() {
    return this.devices.map((device, i) => new Trace(i, this.facts(device), this, SNAPSHOT_OPS));
  }

  facts(device) {
    const start = device.earlier.length;
    const events = Math.max(1, start + device.entries.length);
    const oom = device.marks.find((mark) => mark[1] === 'recorded oom');
    const run = { label: 'as recorded', is_drawn: true, is_grown: true, events, peak_event: 0, peak_reserved_bytes: 0,
      oom: oom === undefined ? null : { event: oom[0] + start } };
    const name = device.device > 0 || this.devices.length > 1 ? `${this.name}, device ${device.device}` : this.name;
    return { name, is_drawn: true, is_main: device === this.main, events, start: Math.max(0, Math.min(start, events - 1)), requests: start + device.requests.length,
      streams: device.streams.names, pools: device.pools.names, runs: [run], frames: this.stacks.frames, sites: this.stacks.sites };
  }

  async loadTrace(trace) {
    const device = this.devices[trace.number];
    const shift = device.earlier.length;
    const late = (event) => (event === NEVER ? NEVER : event + shift);
    const all = [...device.earlier.map((one, i) => ({ ...one, begin: i })),
      ...device.requests.map((one) => ({ ...one, begin: one.begin + shift }))];
    trace.begin = Uint32Array.from(all, (one) => one.begin);
    trace.free = Uint32Array.from(all, (one) => late(one.free));
    trace.bytes = Float64Array.from(all, (one) => one.bytes);
    trace.site = Uint32Array.from(all, (one) => one.site);
    trace.stream = Uint16Array.from(all, (one) => one.stream);
    trace.pool = Uint32Array.from(all, (one) => one.pool || 0);
    trace.blocks = all;
    this.loadEvents(trace, device, shift);
    trace.bound_bytes = undefined;
  }

  loadEvents(trace, device, shift) {
    const numbers = new Map([...device.earlier, ...device.requests].map((request, i) => [request, i]));
    trace.op = new Uint8Array(trace.events);
    trace.op.set(device.ops, shift);
    trace.detail = new Map(Array.from(device.detail, ([event, bytes]) => [event + shift, bytes]));
    for (const [event, request] of device.completes || []) trace.detail.set(event + shift, numbers.get(request) + 1);
    trace.marks = device.marks.map(([event, kind, text]) => [event + shift, kind, text]).sort((a, b) => a[0] - b[0]);
    const first = device.entries.map((entry) => field(entry, 'time_us')).find((time) => Number.isFinite(time) && time > 0);
    if (first === undefined) return;
    trace.times = new Float64Array(trace.events);
    let latest = 0;
    device.entries.forEach((entry, i) => {
      const time = field(entry, 'time_us') - first;
      if (time > latest) latest = time;
      trace.times[i + shift] = latest;
    });
  }

  async loadRun(run) {
    const { trace } = run;
    const device = this.devices[trace.number];
    const shift = device.earlier.length;
    const late = (event) => (event === NEVER ? NEVER : event + shift);
    run.request = Uint32Array.from(trace.blocks.keys());
    run.address = Float64Array.from(trace.blocks, (one) => one.address);
    run.bytes = Float64Array.from(trace.blocks, (one) => one.block);
    run.rounded = run.bytes;
    run.begin = trace.begin;
    run.end = Uint32Array.from(trace.blocks, (one) => late(one.end));
    const pieces = [...device.earlierPieces.map((one) => ({ ...one, begin: 0, end: late(one.end) })),
      ...device.pieces.map((one) => ({ ...one, begin: one.begin + shift, end: late(one.end) })).sort((a, b) => a.begin - b.begin)];
    run.segmentBegin = Uint32Array.from(pieces, (one) => one.begin);
    run.segmentEnd = Uint32Array.from(pieces, (one) => one.end);
    run.segmentAddress = Float64Array.from(pieces, (one) => one.address);
    run.segmentBytes = Float64Array.from(pieces, (one) => one.bytes);
    run.segmentStream = Uint16Array.from(pieces, (one) => one.stream);
    run.segmentPool = Uint32Array.from(pieces, (one) => one.pool);
    run.segmentIsMapped = Uint8Array.from(pieces, (one) => (one.isMapped ? 1 : 0));
    this.sumReserved(run);
  }

  sumReserved(run) {
    run.reserved = new Float64Array(run.last + 1);
    for (let i = 0; i < run.segmentBegin.length; i++) {
      run.reserved[run.segmentBegin[i]] += run.segmentBytes[i];
      if (run.segmentEnd[i] <= run.last) run.reserved[run.segmentEnd[i]] -= run.segmentBytes[i];
    }
    for (let i = 1; i < run.reserved.length; i++) run.reserved[i] += run.reserved[i - 1];
    run.peak_event = Math.max(run.trace.start, run.reserved.reduce((best, bytes, i) => (bytes > run.reserved[best] ? i : best), 0));
    run.peak_reserved_bytes = run.reserved.reduce((most, bytes) => Math.max(most, bytes), 0);
  }
}
