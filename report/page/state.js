// What a run holds right after one event: segments and blocks by address, holes, and the parts that
// reserved bytes are made of. Made anew for each step, so everything is in plain arrays.

class State {
  constructor(run, event) {
    this.run = run;
    this.event = event;
    this.reserved = run.reserved[event];
    this.requested = run.requested[event];
    this.blocks = run.blocks.at(event);
    this.segments = this.joinPieces(run.pieces.at(event));
    this.fillSegments();
    this.sumUp();
  }

  // Mapped pieces that touch each other are one segment that has grown, where the policy does that.
  joinPieces(pieces) {
    const run = this.run;
    const segments = [];
    let last;
    for (const piece of pieces) {
      const address = run.segmentAddress[piece];
      const isMapped = run.is_grown && run.segmentIsMapped[piece] === 1;
      if (isMapped && last !== undefined && last.isMapped && last.end === address &&
          last.stream === run.segmentStream[piece] && last.pool === run.segmentPool[piece]) {
        last.end += run.segmentBytes[piece];
        continue;
      }
      last = { address, end: address + run.segmentBytes[piece], isMapped, stream: run.segmentStream[piece],
        pool: run.segmentPool[piece], begin: run.segmentBegin[piece], free: 0, firstBlock: 0, blockCount: 0 };
      segments.push(last);
    }
    return segments;
  }

  // Blocks lie in segments in one order; what is between them are holes.
  fillSegments() {
    const { address, bytes } = this.run;
    const { blocks } = this;
    this.largestHole = 0;
    this.holeCount = 0;
    let next = 0;
    for (const segment of this.segments) {
      let at = segment.address;
      while (next < blocks.length && address[blocks[next]] < segment.address) next++;
      segment.firstBlock = next;
      for (; next < blocks.length && address[blocks[next]] < segment.end; next++) {
        const block = blocks[next];
        this.addHole(segment, address[block] - at);
        at = address[block] + bytes[block];
      }
      segment.blockCount = next - segment.firstBlock;
      this.addHole(segment, segment.end - at);
    }
  }

  addHole(segment, bytes) {
    if (bytes <= 0) return;
    segment.free += bytes;
    this.holeCount++;
    if (bytes > this.largestHole) this.largestHole = bytes;
  }

  sumUp() {
    const { run, event } = this;
    const { free, bytes } = run.trace;
    const parts = { requested: 0, rounding: 0, unsplit: 0, holes: 0, cached: 0, waiting: 0 };
    this.waitingCount = 0;
    for (const block of this.blocks) {
      const request = run.request[block];
      if (free[request] <= event) {
        parts.waiting += run.bytes[block];
        this.waitingCount++;
        continue;
      }
      parts.requested += bytes[request];
      parts.rounding += run.rounded[block] - bytes[request];
      parts.unsplit += run.bytes[block] - run.rounded[block];
    }
    for (const segment of this.segments) parts[segment.blockCount > 0 ? 'holes' : 'cached'] += segment.free;
    this.parts = parts;
    this.free = parts.holes + parts.cached;
    this.allocated = parts.requested + parts.rounding + parts.unsplit;
  }

  // What lies at an address: the segment, and the block or the hole in it.
  find(address) {
    const { run, blocks } = this;
    const segment = this.segments[lastAtOrBelow(this.segments, address, (one) => one.address)];
    if (segment === undefined || address >= segment.end) return { address };
    const place = lastAtOrBelow(blocks, address, (one) => run.address[one]);
    const block = place >= segment.firstBlock ? blocks[place] : undefined;
    const blockEnd = block === undefined ? segment.address : run.address[block] + run.bytes[block];
    if (block !== undefined && address < blockEnd) return { address, segment, block };
    const isLast = place + 1 >= segment.firstBlock + segment.blockCount;
    return { address, segment, hole: { address: blockEnd, end: isLast ? segment.end : run.address[blocks[place + 1]] } };
  }

  // The place of a block among those alive, or -1.
  placeOf(block) {
    const { run, blocks } = this;
    const place = lastAtOrBelow(blocks, run.address[block], (one) => run.address[one]);
    return place >= 0 && blocks[place] === block ? place : -1;
  }
}

// The index of the last item whose key is at or below a value, -1 when there is none.
function lastAtOrBelow(items, value, keyOf) {
  let low = 0;
  let high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (keyOf(items[middle]) <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
