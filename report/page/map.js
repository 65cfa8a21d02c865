// The memory map: every segment and block at the selected event, at its address. By address each
// byte has one place for the whole run, so that nothing moves but what was freed and requested.
//
// Rows are filled as pixels, one row of pixels for each, and stretched to their height: a step takes
// time for the blocks alive and for the width of the screen, not for rectangles.

class MemoryMap {
  constructor(explorer) {
    this.explorer = explorer;
    this.canvas = explorer.byId('map');
    this.box = explorer.byId('map-box');
    this.picture = document.createElement('canvas');
    this.canvas.addEventListener('pointermove', (event) => this.onMove(event));
    this.canvas.addEventListener('pointerleave', hideTip);
    this.canvas.addEventListener('click', (event) => this.onClick(event));
    this.canvas.addEventListener('keydown', (event) => this.onKey(event));
    this.canvas.addEventListener('focus', () => this.explorer.redraw());
    this.canvas.addEventListener('blur', () => this.explorer.redraw());
    this.box.addEventListener('scroll', () => this.explorer.redraw());
  }

  // ---- drawing

  draw() {
    const isBySegment = this.explorer.layout === 'segment';
    const width = Math.max(60, this.box.clientWidth);
    this.state = this.explorer.state;
    this.places = isBySegment ? new SegmentPlaces(this.state, width) : new AddressPlaces(this.state.run, width);
    this.explorer.byId('map-extent').style.height = `${Math.max(this.places.height, MAP.height)}px`;
    this.scrolled = isBySegment ? this.box.scrollTop : 0;
    const { context, ratio } = fitCanvas(this.canvas, MAP.height);
    this.context = context;
    this.ratio = ratio;
    this.paint();
    this.outline(this.blockOfPin(), styleColour('ink'), 2.5);
    if (document.activeElement === this.canvas) this.outline(this.focused, styleColour('accent'), 2.5);
    this.drawAxis(width);
    this.canvas.setAttribute('aria-label', this.label());
  }

  label() {
    const { state } = this;
    return `Memory map at event ${state.event}: ${countText(state.segments.length)} segments, ` +
      `${countText(state.blocks.length)} blocks, ${bytesText(state.free)} free inside segments. ` +
      'Arrow keys go from block to block, Enter pins one, Escape unpins it';
  }

  // Rows that are seen now.
  visibleRows() {
    const { top, rowHeight, rowCount } = this.places;
    const first = Math.max(0, Math.floor((this.scrolled - top) / rowHeight));
    return { first, end: Math.min(rowCount, Math.ceil((this.scrolled + MAP.height - top) / rowHeight)) };
  }

  paint() {
    const { places, ratio } = this;
    const rows = this.visibleRows();
    const count = Math.max(1, rows.end - rows.first);
    const width = Math.max(1, Math.round(places.width * ratio));
    sizeCanvas(this.picture, width, count);
    const target = this.picture.getContext('2d');
    const image = target.createImageData(width, count);
    this.fillPixels(new Uint32Array(image.data.buffer), width, rows);
    target.putImageData(image, 0, 0);
    const { context } = this;
    context.imageSmoothingEnabled = false;
    for (let row = rows.first; row < rows.end; row++)
      context.drawImage(this.picture, 0, row - rows.first, width, 1, places.left, this.yOfRow(row), places.width,
        places.rowHeight - MAP.rowGap);
    this.edgeRows(rows);
  }

  yOfRow(row) {
    return this.places.top + row * this.places.rowHeight - this.scrolled;
  }

  // Segments over the ground, blocks over segments; a pixel of the ground stays between wide blocks.
  fillPixels(pixels, width, rows) {
    const { places, state } = this;
    const { run } = state;
    const fill = (address, end, colour, gap) => places.eachPiece(address, end, (row, from, to) => {
      if (row < rows.first || row >= rows.end) return;
      const start = (row - rows.first) * width;
      const left = Math.round(from * width);
      const right = Math.max(left + 1, Math.round(to * width));
      pixels.fill(colour, start + left, start + Math.min(width, right - left > 3 ? right - gap : right));
    });
    this.fillGround(pixels, width, rows);
    const hole = pixelOf(styleColour('hole'));
    for (const segment of state.segments) fill(segment.address, segment.end, hole, 0);
    const paintOf = this.painter();
    for (const block of this.visibleBlocks(rows))
      fill(run.address[block], run.address[block] + run.bytes[block], paintOf(block), 1);
    const edge = pixelOf(styleColour('segment'));
    for (const segment of state.segments) this.edgeSegment(pixels, width, rows, segment, edge);
  }

  fillGround(pixels, width, rows) {
    const ground = pixelOf(styleColour('unheld'));
    for (let row = rows.first; row < rows.end; row++) {
      const start = (row - rows.first) * width;
      pixels.fill(ground, start, start + Math.round(this.places.rowShare(row) * width));
    }
  }

  // With a row for each segment only the blocks of segments on the screen are looked at.
  visibleBlocks(rows) {
    const { segments, blocks } = this.state;
    if (this.explorer.layout !== 'segment' || rows.first >= rows.end) return blocks;
    const [first, last] = [segments[rows.first], segments[rows.end - 1]];
    return blocks.subarray(first.firstBlock, last.firstBlock + last.blockCount);
  }

  painter() {
    const { state } = this;
    const { run } = state;
    const { colouring, lit } = this.explorer;
    const hole = styleColour('hole');
    const palette = colouring.palette();
    const bright = palette.map((colour) => pixelOf(colour));
    const dim = palette.map((colour) => pixelOf(colour, hole, 0.18));
    const waiting = pixelOf(styleColour('part-waiting'));
    const { free } = run.trace;
    return (block) => {
      const request = run.request[block];
      if (lit !== undefined && lit[request] === 0) return dim[colouring.blockCodes[block]];
      return free[request] <= state.event ? waiting : bright[colouring.blockCodes[block]];
    };
  }

  edgeSegment(pixels, width, rows, segment, edge) {
    this.places.eachPiece(segment.address, segment.end, (row, from, to) => {
      if (row < rows.first || row >= rows.end) return;
      const left = Math.round(from * width);
      const right = Math.min(width, Math.round(to * width));
      if (right - left < 5) return;
      pixels[(row - rows.first) * width + left] = edge;
      pixels[(row - rows.first) * width + right - 1] = edge;
    });
  }

  // Lines above and below what a segment holds of each row.
  edgeRows(rows) {
    const { context, places, state } = this;
    context.fillStyle = styleColour('segment');
    const height = places.rowHeight - MAP.rowGap;
    context.beginPath();
    for (const segment of state.segments)
      places.eachPiece(segment.address, segment.end, (row, from, to) => {
        const width = (to - from) * places.width;
        if (row < rows.first || row >= rows.end || width < 4) return;
        context.rect(places.left + from * places.width, this.yOfRow(row), width, 1);
        context.rect(places.left + from * places.width, this.yOfRow(row) + height - 1, width, 1);
      });
    context.fill();
  }

  outline(block, colour, width) {
    const { context, places, state } = this;
    if (block === undefined || state.placeOf(block) < 0) return;
    const { address, bytes } = state.run;
    context.strokeStyle = colour;
    context.lineWidth = width;
    places.eachPiece(address[block], address[block] + bytes[block], (row, from, to) => {
      context.strokeRect(places.left + from * places.width - 1, this.yOfRow(row) - 1,
        Math.max(3, (to - from) * places.width) + 1, places.rowHeight - MAP.rowGap + 2);
    });
  }

  blockOfPin() {
    const { pinned, run } = this.explorer;
    const block = pinned === undefined ? -1 : run.blockOf(pinned);
    return block < 0 ? undefined : block;
  }

  // ---- axes: bytes along a row above, bytes (or segments) before each row at the left

  drawAxis(width) {
    const { context, places } = this;
    const rows = this.visibleRows();
    context.clearRect(0, 0, width, places.top - 1);
    context.font = '11px system-ui, sans-serif';
    context.fillStyle = styleColour('quiet');
    context.textBaseline = 'middle';
    const parts = places.width > 620 ? 8 : places.width > 300 ? 4 : 2;
    for (let part = 0; part <= parts; part++) {
      const x = places.left + part / parts * places.width;
      context.textAlign = part === 0 ? 'left' : part === parts ? 'right' : 'center';
      context.fillText(places.axisLabel(part / parts), x, places.top / 2 - 1);
      context.fillRect(Math.min(Math.round(x), width - 2), places.top - 5, 1, 4);
    }
    context.textAlign = 'right';
    for (let row = rows.first; row < rows.end; row++) {
      const y = this.yOfRow(row) + (places.rowHeight - MAP.rowGap) / 2;
      if (y >= places.top) context.fillText(places.rowLabel(row), places.left - 6, y);
    }
  }

  // ---- pointer

  find(event) {
    const box = this.canvas.getBoundingClientRect();
    return this.findAt(event.clientX - box.left, event.clientY - box.top);
  }

  findAt(x, y) {
    const { places } = this;
    const down = y - places.top + this.scrolled;
    const row = Math.floor(down / places.rowHeight);
    const share = (x - places.left) / places.width;
    if (y < places.top || share < 0 || share >= 1 || down - row * places.rowHeight > places.rowHeight - MAP.rowGap)
      return undefined;
    const address = places.addressAt(row, share);
    return address === undefined ? undefined : this.state.find(address);
  }

  onMove(event) {
    const found = this.find(event);
    if (found === undefined) hideTip();
    else showTip(this.describe(found), event.clientX, event.clientY);
  }

  onClick(event) {
    const found = this.find(event);
    this.focused = found === undefined ? undefined : found.block;
    if (this.focused !== undefined) this.explorer.pin(this.state.run.request[this.focused]);
    else this.explorer.pin(undefined);
  }

  describe({ address, segment, block, hole }) {
    if (segment === undefined) return ['not held', `${addressText(address)} belongs to no segment at this event`];
    const where = `segment ${addressText(segment.address)}, ${bytesText(segment.end - segment.address)}, ` +
      `${percentText(segment.free, segment.end - segment.address)} free`;
    if (block !== undefined) return [...this.explorer.describeBlock(block, this.state.event), where];
    return [segment.blockCount > 0 ? 'hole' : 'cached segment',
      `${addressText(hole.address)}, ${bytesText(hole.end - hole.address)}`, where];
  }

  // ---- keys

  onKey(event) {
    const { blocks } = this.state;
    const acts = {
      ArrowLeft: () => this.step(-1),
      ArrowRight: () => this.step(1),
      ArrowUp: () => this.stepRow(-1),
      ArrowDown: () => this.stepRow(1),
      Home: () => this.focus(blocks[0]),
      End: () => this.focus(blocks[blocks.length - 1]),
      Enter: () => this.pinFocused(),
      ' ': () => this.pinFocused(),
      Escape: () => this.explorer.pin(undefined),
    };
    onKeys(event, acts);
  }

  pinFocused() {
    if (this.focused !== undefined && this.state.placeOf(this.focused) >= 0)
      this.explorer.pin(this.state.run.request[this.focused]);
  }

  // Where keys go on from: the block that has the focus, or had its address, else the pinned one.
  place() {
    const { state } = this;
    const block = this.focused === undefined ? this.blockOfPin() : this.focused;
    if (block === undefined) return -1;
    return lastAtOrBelow(state.blocks, state.run.address[block], (one) => state.run.address[one]);
  }

  step(direction) {
    const { blocks } = this.state;
    const next = Math.max(0, Math.min(blocks.length - 1, this.place() + direction));
    this.focus(blocks[next]);
  }

  // The block at the same place in the next row that holds one.
  stepRow(direction) {
    const { state, places } = this;
    const from = state.blocks[Math.max(0, this.place())];
    if (from === undefined) return;
    let start;
    places.eachPiece(state.run.address[from], state.run.address[from] + state.run.bytes[from], (row, left, right) => {
      if (start === undefined || direction > 0) start = { row, share: (left + right) / 2 };
    });
    for (let row = start.row + direction; row >= 0 && row < places.rowCount; row += direction) {
      const block = this.nearestInRow(row, start.share);
      if (block !== undefined) return this.focus(block);
    }
  }

  nearestInRow(row, share) {
    const { state, places } = this;
    const { address, bytes } = state.run;
    const at = places.addressAt(row, Math.min(share, places.rowShare(row) * 0.9999));
    const place = lastAtOrBelow(state.blocks, at, (one) => address[one]);
    let nearest;
    for (const block of state.blocks.subarray(Math.max(0, place), place + 2))
      places.eachPiece(address[block], address[block] + bytes[block], (inRow, left, right) => {
        const distance = Math.max(0, left - share, share - right);
        if (inRow === row && (nearest === undefined || distance < nearest.distance)) nearest = { block, distance };
      });
    return nearest === undefined ? undefined : nearest.block;
  }

  focus(block) {
    if (block === undefined) return;
    this.focused = block;
    this.scrollTo(block);
    this.explorer.say(this.explorer.describeBlock(block, this.state.event).join(', '));
    this.explorer.redraw();
  }

  scrollTo(block) {
    if (this.explorer.layout !== 'segment') return;
    const { address, bytes } = this.state.run;
    this.places.eachPiece(address[block], address[block] + bytes[block], (row) => {
      const y = this.yOfRow(row);
      if (y < this.places.top) this.box.scrollTop += y - this.places.top;
      else if (y + this.places.rowHeight > MAP.height) this.box.scrollTop += y + this.places.rowHeight - MAP.height;
    });
  }
}
