// The memory map: every segment and block at the selected event, at its address. By address each
// byte has one place for the whole run, so that nothing moves but what was freed and requested.

const MAP = { height: 440, rows: 22, rowGap: 4, segmentRow: 18, label: 150, segmentsMax: 1500 };

class MemoryMap {
  constructor(explorer) {
    this.explorer = explorer;
    this.canvas = byId('map');
    this.canvas.addEventListener('pointermove', (event) => this.onMove(event));
    this.canvas.addEventListener('pointerleave', hideTip);
    this.canvas.addEventListener('click', (event) => this.onClick(event));
  }

  draw() {
    const isBySegment = this.explorer.layout === 'segment';
    this.state = this.explorer.state;
    const shown = Math.min(this.state.segments.length, MAP.segmentsMax);
    const height = isBySegment ? Math.max(MAP.height, shown * MAP.segmentRow + 4) : MAP.height;
    const { context, width } = fitCanvas(this.canvas, height);
    this.context = context;
    this.places = isBySegment ? new SegmentPlaces(this.state, width) : new AddressPlaces(this.state.run, width);
    this.paint();
    this.canvas.setAttribute('aria-label', `Memory map at event ${this.state.event}: ` +
      `${countText(this.state.segments.length)} segments, ${countText(this.state.blocks.length)} blocks, ` +
      `${bytesText(this.state.free)} free inside segments`);
  }

  paint() {
    const { context, places, state } = this;
    const run = state.run;
    const paintOf = this.explorer.colouring.painter();
    const group = this.explorer.group;
    const waiting = styleColour('part-waiting');
    places.drawGround(context);
    context.fillStyle = styleColour('hole');
    for (const segment of state.segments) this.fill(segment.address, segment.end, 0);
    for (const block of state.blocks) {
      const isDim = group !== undefined && run.trace.groups.of[run.request[block]] !== group;
      context.globalAlpha = isDim ? 0.18 : 1;
      context.fillStyle = run.isWaiting(block, state.event) ? waiting : paintOf(block);
      this.fill(run.address[block], run.address[block] + run.bytes[block], 0.75);
    }
    context.globalAlpha = 1;
    context.strokeStyle = styleColour('segment');
    context.lineWidth = 1;
    for (const segment of state.segments) this.outline(segment);
  }

  // Blocks wide enough to be seen apart leave a little of the ground between them.
  fill(address, end, gap) {
    for (const { x, y, width, height } of this.places.boxes(address, end))
      this.context.fillRect(x, y, width > 3 ? width - gap : width, height);
  }

  outline(segment) {
    for (const { x, y, width, height } of this.places.boxes(segment.address, segment.end))
      if (width > 4) this.context.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1);
  }

  // ---- pointer

  // What lies at a place: the segment, and the block or the hole in it.
  find(event) {
    const box = this.canvas.getBoundingClientRect();
    const address = this.places.addressAt(event.clientX - box.left, event.clientY - box.top);
    if (address === undefined) return undefined;
    const { state } = this;
    const run = state.run;
    const segment = state.segments[lastAtOrBelow(state.segments, address, (one) => one.address)];
    if (segment === undefined || address >= segment.end) return { address };
    const block = state.blocks[lastAtOrBelow(state.blocks, address, (one) => run.address[one])];
    const isIn = block !== undefined && address < run.address[block] + run.bytes[block];
    const hole = segment.holes.find((one) => address >= one.address && address < one.end);
    return { address, segment, block: isIn ? block : undefined, hole };
  }

  onMove(event) {
    const found = this.find(event);
    if (found === undefined) hideTip();
    else showTip(this.describe(found), event.clientX, event.clientY);
  }

  onClick(event) {
    const found = this.find(event);
    const { run } = this.state;
    this.explorer.highlight(found !== undefined && found.block !== undefined
      ? run.trace.groups.of[run.request[found.block]] : undefined);
  }

  describe({ address, segment, block, hole }) {
    if (segment === undefined) return ['not held', `${addressText(address)} belongs to no segment at this event`];
    const where = `segment ${addressText(segment.address)}, ${bytesText(segment.end - segment.address)}, ` +
      `${percentText(segment.free, segment.end - segment.address)} free`;
    if (block !== undefined) return [...this.describeBlock(block), where];
    if (hole === undefined) return [addressText(address), where];
    return [segment.blockCount > 0 ? 'hole' : 'cached segment',
      `${addressText(hole.address)}, ${bytesText(hole.end - hole.address)}`, where];
  }

  describeBlock(block) {
    const run = this.state.run;
    const trace = run.trace;
    const request = run.request[block];
    const asked = trace.bytes[request];
    const isWaiting = run.isWaiting(block, this.state.event);
    const group = trace.groups.of[request];
    const freed = trace.free[request];
    return [
      `${bytesText(run.bytes[block])} block${isWaiting ? ', freed, waits for a stream' : ''}`,
      trace.groups.names[group],
      ...trace.groups.frames[group].slice(0, 5).map((frame) => `  ${frame}`),
      `${addressText(run.address[block])}, ${bytesText(asked)} requested, ${bytesText(run.bytes[block] - asked)} more`,
      `born at event ${countText(run.begin[block])}, ${freed === NEVER ? 'never freed' : `freed at ${countText(freed)}`}`,
      `stream ${trace.streams[trace.stream[request]] || 0}${trace.pool[request] > 0 ? `, pool ${trace.pools[trace.pool[request]]}` : ''}`,
    ];
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

// By address: all ranges that the run ever held, one after the other, broken into rows of equal
// bytes.
class AddressPlaces {
  constructor(run, width) {
    this.ranges = run.ranges;
    this.width = width;
    const last = this.ranges[this.ranges.length - 1];
    this.total = last === undefined ? 1 : last.offset + last.end - last.address;
    this.rowBytes = Math.max(1, Math.ceil(this.total / MAP.rows));
    this.rowHeight = MAP.height / MAP.rows;
  }

  drawGround(context) {
    context.fillStyle = styleColour('unheld');
    for (let row = 0; row * this.rowBytes < this.total; row++) {
      const bytes = Math.min(this.rowBytes, this.total - row * this.rowBytes);
      context.fillRect(0, row * this.rowHeight, bytes / this.rowBytes * this.width, this.rowHeight - MAP.rowGap);
    }
  }

  offsetOf(address) {
    const range = this.ranges[lastAtOrBelow(this.ranges, address, (one) => one.address)];
    return range === undefined ? 0 : range.offset + (address - range.address);
  }

  boxes(address, end) {
    const boxes = [];
    let from = this.offsetOf(address);
    const to = from + (end - address);
    for (let row = Math.floor(from / this.rowBytes); from < to; row++) {
      const until = Math.min(to, (row + 1) * this.rowBytes);
      const x = (from - row * this.rowBytes) / this.rowBytes * this.width;
      boxes.push({ x, y: row * this.rowHeight, width: (until - from) / this.rowBytes * this.width,
        height: this.rowHeight - MAP.rowGap });
      from = until;
    }
    return boxes;
  }

  addressAt(x, y) {
    const row = Math.floor(y / this.rowHeight);
    if (x < 0 || x >= this.width || y - row * this.rowHeight > this.rowHeight - MAP.rowGap) return undefined;
    const offset = (row + x / this.width) * this.rowBytes;
    if (offset >= this.total) return undefined;
    const range = this.ranges[lastAtOrBelow(this.ranges, offset, (one) => one.offset)];
    return Math.floor(range.address + (offset - range.offset));
  }
}

// A row for each segment held now, by address, as wide as the page: the label says how large it is.
class SegmentPlaces {
  constructor(state, width) {
    this.segments = state.segments.slice(0, MAP.segmentsMax);
    this.left = Math.min(MAP.label, width / 3);
    this.width = width - this.left;
  }

  drawGround(context) {
    context.fillStyle = styleColour('quiet');
    context.font = '11px system-ui, sans-serif';
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    this.segments.forEach((segment, row) => {
      const bytes = segment.end - segment.address;
      context.fillText(`${stepText(bytes)}, ${percentText(segment.free, bytes)} free`, this.left - 6,
        (row + 0.5) * MAP.segmentRow - 1);
    });
  }

  boxes(address, end) {
    const row = lastAtOrBelow(this.segments, address, (one) => one.address);
    const segment = this.segments[row];
    if (segment === undefined || address >= segment.end) return [];
    const scale = this.width / (segment.end - segment.address);
    return [{ x: this.left + (address - segment.address) * scale, y: row * MAP.segmentRow, width: (end - address) * scale,
      height: MAP.segmentRow - MAP.rowGap }];
  }

  addressAt(x, y) {
    const segment = this.segments[Math.floor(y / MAP.segmentRow)];
    if (segment === undefined || x < this.left) return undefined;
    return Math.floor(segment.address + (x - this.left) / this.width * (segment.end - segment.address));
  }
}
