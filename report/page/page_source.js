// Traces and runs from the data elements of a report.

class PageSource {
  constructor(data) {
    this.data = data;
  }

  traces() {
    const { traces, ops } = this.data.facts;
    return traces.map((facts, i) => new Trace(i, facts, this, ops));
  }

  async loadTrace(trace) {
    const count = trace.requests;
    Object.assign(trace, await this.data.json(`data-${trace.number}-names-0`));
    const reader = await this.data.columns(`data-${trace.number}-trace-0`);
    trace.begin = reader.steps(count, Uint32Array);
    trace.free = this.readEnds(trace.begin, reader);
    trace.bytes = reader.plain(count, Float64Array);
    trace.site = reader.plain(count, Uint32Array);
    trace.stream = reader.plain(count, Uint16Array);
    trace.pool = reader.plain(count, Uint32Array);
    this.readEvents(trace, reader);
    if (trace.has_times) trace.times = this.readTimes(trace, reader);
  }

  readEvents(trace, reader) {
    const first = trace.first || 0; // of a page that draws a part of the events
    trace.op = new Uint8Array(trace.events);
    trace.op.set(reader.plain(trace.events - first, Uint8Array), first);
    trace.detail = new Map();
    const [alloc, free] = ['alloc', 'free'].map((name) => trace.ops.indexOf(name));
    for (let event = first; event < trace.events; event++) {
      if (trace.op[event] === alloc || trace.op[event] === free) continue;
      const detail = reader.number();
      if (detail > 0) trace.detail.set(event, detail);
    }
  }

  readTimes(trace, reader) {
    const first = trace.first || 0;
    const times = new Float64Array(trace.events);
    times.set(reader.plain(trace.events - first, Float64Array), first);
    for (let i = 1; i < times.length; i++) times[i] += times[i - 1];
    return times;
  }

  async loadRun(run) {
    const reader = await this.data.columns(`data-${run.trace.number}-run-${run.number}`);
    const isServed = reader.plain(run.trace.requests, Uint8Array);
    let served = 0;
    const request = new Uint32Array(isServed.length);
    for (let i = 0; i < isServed.length; i++) if (isServed[i] === 1) request[served++] = i;
    run.request = request.slice(0, served);
    this.readBlocks(run, reader);
    this.readSegments(run, reader);
    this.readReserved(run, reader);
  }

  readBlocks(run, reader) {
    const { begin, free, bytes } = run.trace;
    const count = run.request.length;
    const scale = 2 ** run.shift;
    run.address = reader.steps(count, Float64Array);
    for (let i = 0; i < count; i++) run.address[i] *= scale;
    run.bytes = reader.plain(count, Float64Array);
    run.rounded = reader.plain(count, Float64Array);
    const waits = reader.plain(count, Float64Array);
    run.begin = new Uint32Array(count);
    run.end = new Uint32Array(count);
    for (let i = 0; i < count; i++) {
      const request = run.request[i];
      run.begin[i] = begin[request];
      run.bytes[i] += bytes[request];
      run.rounded[i] += bytes[request];
      run.end[i] = this.endOf(run, free[request], waits[i]);
    }
  }

  endOf(run, free, wait) {
    if (free === NEVER || free > run.last || wait === 1) return NEVER;
    return wait === 0 ? free : free + wait - 1;
  }

  // The event at which each thing that begins ends: the column holds events it lived and 1; 0 for those that never end.
  readEnds(begins, reader) {
    const lives = reader.plain(begins.length, Float64Array);
    const ends = new Uint32Array(begins.length);
    for (let i = 0; i < ends.length; i++) ends[i] = lives[i] === 0 ? NEVER : begins[i] + lives[i] - 1;
    return ends;
  }

  readSegments(run, reader) {
    const count = run.segments;
    run.segmentBegin = reader.steps(count, Uint32Array);
    run.segmentEnd = this.readEnds(run.segmentBegin, reader);
    run.segmentAddress = reader.steps(count, Float64Array);
    run.segmentBytes = reader.plain(count, Float64Array);
    run.segmentStream = reader.plain(count, Uint16Array);
    run.segmentPool = reader.plain(count, Uint32Array);
    run.segmentIsMapped = reader.plain(count, Uint8Array);
  }

  readReserved(run, reader) {
    const events = reader.steps(run.steps, Float64Array);
    const levels = reader.steps(run.steps, Float64Array);
    run.reserved = new Float64Array(run.last + 1);
    for (let i = 0; i < run.steps; i++)
      run.reserved.fill(levels[i], events[i], i + 1 < run.steps ? events[i + 1] : run.last + 1);
  }
}
