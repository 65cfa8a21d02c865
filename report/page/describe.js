// What events, blocks and segments are, in lines of text: for the box beside the pointer, the list of events
// and for those who listen to the page.

function eventKind(trace, event) {
  const mark = trace.markAt.get(event);
  if (trace.events === 0) return 'no event';
  if (mark !== undefined) return mark[2] === null ? mark[1] : `${mark[1]} ${mark[2]}`;
  return trace.ops[trace.op[event]].replace(/_/g, ' ');
}

// The request that an event is about, or NEVER.
function requestOf(trace, event) {
  if (trace.events === 0) return NEVER;
  const request = trace.requestAt[event] !== NEVER ? trace.requestAt[event] : trace.freedAt[event];
  if (request !== NEVER) return request;
  const name = trace.ops[trace.op[event]];
  const detail = trace.detail.get(event);
  return (name === 'use' || name === 'complete') && detail !== undefined ? detail - 1 : NEVER;
}

function eventBytes(trace, event) {
  const request = requestOf(trace, event);
  return request !== NEVER ? trace.bytes[request] : trace.detail.get(event) || 0;
}

function requestName(trace, request) {
  const { groups } = trace;
  return groups.isBySite ? groups.names[groups.of[request]] : `stream ${trace.streams[trace.stream[request]] || 0}`;
}

function describeAction(run, event) {
  const { trace } = run;
  const request = requestOf(trace, event);
  const isOom = run.oom !== null && run.oom.event === event;
  const kind = `${isOom ? 'OUT OF MEMORY: ' : ''}${eventKind(trace, event)}`;
  const bytes = eventBytes(trace, event);
  if (request === NEVER) return bytes > 0 ? `${kind} ${bytesText(bytes)}` : kind;
  return `${kind} ${bytesText(bytes)}, ${requestName(trace, request)}`;
}

function placeText(trace, request) {
  const pool = trace.pool[request] > 0 ? `, pool ${trace.pools[trace.pool[request]]}` : '';
  return `stream ${trace.streams[trace.stream[request]] || 0}${pool}`;
}

function freedText(trace, request) {
  const freed = trace.free[request];
  return freed === NEVER ? 'never freed' : `freed at event ${countText(freed)}`;
}

function bornText(trace, request) {
  return trace.begin[request] <= trace.start && trace.start > 0 && !trace.first ? 'held from before the recording'
    : `requested at event ${countText(trace.begin[request])}`;
}

function describeBlock(run, block, event) {
  const { trace } = run;
  const request = run.request[block];
  const asked = trace.bytes[request];
  const frames = trace.stackOf(request);
  return [
    `${bytesText(run.bytes[block])} block${run.isWaiting(block, event) ? ', freed, waits for a stream' : ''}`,
    trace.groups.names[trace.groups.of[request]],
    ...frames.slice(0, 5).map((frame) => `  ${trace.frameText(frame)}`),
    ...(frames.length > 5 ? [`  … ${frames.length - 5} more: pin the block to see them`] : []),
    `${addressText(run.address[block])}, ${bytesText(asked)} requested, ${bytesText(run.bytes[block] - asked)} more`,
    `${bornText(trace, request)}, ${freedText(trace, request)}`,
    placeText(trace, request),
  ];
}

function describeSegment(run, segment) {
  const { trace } = run;
  const end = run.segmentEnd[segment];
  const asked = trace.requestAt[run.segmentBegin[segment]];
  return [
    `${bytesText(run.segmentBytes[segment])} ${run.segmentIsMapped[segment] === 1 ? 'mapped piece' : 'segment'}`,
    addressText(run.segmentAddress[segment]),
    `taken at event ${countText(run.segmentBegin[segment])}, ` +
      `${end === NEVER || end > run.last && !trace.all_events ? 'held to the end' : `given back at event ${countText(end)}`}`,
    ...(asked === NEVER ? [] : [`for ${bytesText(trace.bytes[asked])}, ${requestName(trace, asked)}`]),
    `stream ${trace.streams[run.segmentStream[segment]] || 0}`,
  ];
}
