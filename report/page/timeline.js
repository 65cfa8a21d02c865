// The timeline: blocks or segments of the selected run as areas, reserved bytes of every run, the bound,
// the capacity, marks. Each pixel of a line shows the lowest and the highest of its events, so that no
// peak is lost.
//
// The picture is kept and only drawn anew when something in it is another; a step of the cursor copies it.

const TIMELINE = { height: 320, left: 74, right: 12, top: 20, bottom: 34 };

class Timeline {
  constructor(explorer) {
    this.explorer = explorer;
    this.axis = explorer.axis;
    this.canvas = explorer.byId('timeline');
    this.kept = document.createElement('canvas');
    this.bytesView = undefined; // { low, high }: a part of the bytes axis
    this.listen();
  }

  forget() {
    this.isStale = true;
  }

  resetBytes() {
    this.bytesView = undefined;
    this.forget();
  }

  // ---- drawing

  draw() {
    const { context, width, height, ratio } = fitCanvas(this.canvas, TIMELINE.height);
    this.context = context;
    this.ratio = ratio;
    this.place(width, height);
    const key = `${this.axis.view.from} ${this.axis.view.to} ${width} ${ratio}`;
    if (this.isStale || key !== this.keptKey) {
      this.keptKey = key;
      this.isStale = false;
      this.drawKept(width, height, ratio);
    }
    context.drawImage(this.kept, 0, 0, width, height);
    this.drawCursor(height);
    this.drawBrush();
  }

  place(width, height) {
    this.axis.left = TIMELINE.left;
    this.axis.width = this.plotWidth = Math.max(50, width - TIMELINE.left - TIMELINE.right);
    this.plotHeight = height - TIMELINE.top - TIMELINE.bottom;
    const { low, high } = this.bytesView || { low: 0, high: this.mostBytes() };
    this.low = low;
    this.most = high;
  }

  mostBytes() {
    const { run, trace } = this.explorer;
    const most = Math.max(1, ...trace.runs.filter((one) => one.is_drawn).map((one) => one.peak_reserved_bytes));
    const capacity = run.capacity_bytes;
    return 1.04 * (capacity !== undefined && capacity < 1.6 * most ? Math.max(most, capacity) : most);
  }

  drawKept(width, height, ratio) {
    const shown = this.context;
    sizeCanvas(this.kept, width * ratio, height * ratio);
    this.context = this.kept.getContext('2d');
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, width, height);
    this.drawPicture(width, height);
    this.context = shown;
  }

  drawPicture(width, height) {
    const { context } = this;
    const { run } = this.explorer;
    this.edges = this.axis.columns(Math.floor(this.plotWidth) + 1, 1);
    this.drawAreas();
    // The grid lies under the areas, whose pixels are put where they are to be without looking at what is there.
    context.globalCompositeOperation = 'destination-over';
    this.drawAxes(width);
    context.globalCompositeOperation = 'source-over';
    context.save();
    context.beginPath();
    context.rect(TIMELINE.left, 0, this.plotWidth, height);
    context.clip();
    this.drawMatches();
    context.beginPath();
    context.rect(TIMELINE.left, TIMELINE.top - 6, this.plotWidth, this.plotHeight + 6);
    context.save();
    context.clip();
    for (const one of this.explorer.drawnRuns()) if (one !== run) this.strokeRun(one, 1.25);
    this.strokeRun(run, 2.25);
    this.drawLines([
      { bytes: this.explorer.trace.bound_bytes, name: 'bound', colour: styleColour('bound') },
      { bytes: run.capacity_bytes, name: 'capacity', colour: styleColour('bad') },
    ]);
    for (const one of this.explorer.drawnRuns()) if (one.oom !== null) this.drawOom(one);
    context.restore();
    this.drawMarks();
    context.restore();
  }

  yOf(bytes) {
    return TIMELINE.top + this.plotHeight * (1 - (bytes - this.low) / (this.most - this.low));
  }

  bytesAt(y) {
    return this.low + (1 - (y - TIMELINE.top) / this.plotHeight) * (this.most - this.low);
  }

  drawAxes(width) {
    const { context } = this;
    context.font = '12px system-ui, sans-serif';
    context.fillStyle = styleColour('quiet');
    context.strokeStyle = styleColour('grid');
    context.lineWidth = 1;
    context.textBaseline = 'middle';
    context.textAlign = 'right';
    const step = byteStep((this.most - this.low) / 5);
    for (let bytes = Math.ceil(this.low / step) * step; bytes <= this.most; bytes += step) {
      const y = Math.round(this.yOf(bytes)) + 0.5;
      context.beginPath();
      context.moveTo(TIMELINE.left, y);
      context.lineTo(width - TIMELINE.right, y);
      context.stroke();
      context.fillText(stepText(bytes), TIMELINE.left - 8, y);
    }
    this.drawTicks();
  }

  drawTicks() {
    const { context, axis } = this;
    const { from, to } = axis.view;
    const bottom = TIMELINE.top + this.plotHeight;
    const step = decimalStep((to - from) / Math.max(2, this.plotWidth / 110));
    context.textBaseline = 'top';
    context.textAlign = 'center';
    for (let value = Math.ceil(from / step) * step; value <= to; value += step) {
      const x = TIMELINE.left + (value - from) / (to - from) * this.plotWidth;
      const text = axis.isByTime ? `${Number((value / 1e6).toPrecision(7))} s` : countText(value);
      const half = context.measureText(text).width / 2;
      if (x + half > TIMELINE.left + this.plotWidth + TIMELINE.right) continue;
      context.fillRect(Math.round(x), bottom, 1, 4);
      context.fillText(text, x, bottom + 8);
    }
  }

  // ---- areas

  drawAreas() {
    const { explorer, ratio } = this;
    this.areas = undefined;
    if (explorer.areas === 'levels') {
      this.fillLevel(explorer.run.requestedExtremes, explorer.run.requested, styleColour('part-requested'));
      return;
    }
    const width = Math.round(this.plotWidth * ratio);
    const height = Math.round(this.plotHeight * ratio);
    this.areas = this.stackOf(explorer);
    this.areas.layOut(this.axis.columns(width, ratio), height / (this.most - this.low), this.low);
    if (this.image === undefined || this.image.width !== width || this.image.height !== height) {
      this.image = this.context.createImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    this.pixels.fill(0);
    this.areas.paint(this.pixels, width, height, stackPalette(explorer.colouring), this.markedItem(),
      pixelOf(styleColour('ink')));
    this.context.putImageData(this.image, Math.round(TIMELINE.left * ratio), Math.round(TIMELINE.top * ratio));
  }

  // What the areas are made from is kept until the items or their colours are others.
  stackOf({ run, areas, colouring, lit }) {
    const { stack } = this;
    if (stack === undefined || stack.run !== run || stack.kind !== areas)
      this.stack = { run, kind: areas, index: new StackIndex(this.areaItems()) };
    else if (stack.colouring === colouring && stack.lit === lit) return stack.areas;
    Object.assign(this.stack, { colouring, lit });
    this.stack.areas = new StackedAreas(this.areaItems(), this.areaLevels(), this.stack.index);
    return this.stack.areas;
  }

  areaItems() {
    const { run, colouring, lit } = this.explorer;
    if (this.explorer.areas === 'segments')
      return { begin: run.segmentBegin, end: run.segmentEnd, bytes: run.segmentBytes, codes: colouring.segmentCodes,
        alive: run.pieces };
    return { begin: run.begin, end: run.end, bytes: run.bytes, codes: colouring.blockCodes, alive: run.blocks,
      request: run.request, lit };
  }

  areaLevels() {
    const { run } = this.explorer;
    return this.explorer.areas === 'segments' ? run.reservedExtremes : run.activeExtremes;
  }

  markedItem() {
    const { run, pinned } = this.explorer;
    return this.explorer.areas === 'segments' || pinned === undefined ? -1 : run.blockOf(pinned);
  }

  // The block (or the segment) at a place, 'rest' for those too small to be drawn apart, or undefined.
  areaAt(x, y) {
    const isInside = x >= TIMELINE.left && x < TIMELINE.left + this.plotWidth &&
      y >= TIMELINE.top && y <= TIMELINE.top + this.plotHeight;
    if (!isInside || this.areas === undefined) return undefined;
    return this.areas.find(Math.floor((x - TIMELINE.left) * this.ratio), this.bytesAt(y));
  }

  // Where what is searched for was requested: ticks at the foot of the plot.
  drawMatches() {
    const { search } = this.explorer;
    if (search.events === undefined) return;
    this.context.fillStyle = styleColour('found');
    let last = -Infinity;
    const until = this.axis.eventFrom(TIMELINE.left + this.plotWidth + 1);
    for (let i = firstAbove(search.events, this.axis.eventFrom(TIMELINE.left) - 1); i < search.events.length; i++) {
      if (search.events[i] > until) break;
      const x = Math.round(this.axis.xOf(search.events[i]));
      if (x === last) continue;
      last = x;
      this.context.fillRect(x, TIMELINE.top + this.plotHeight - 7, 1.5, 7);
    }
  }

  // ---- lines

  // Points of a level along the pixels, each with the lowest and highest of its events.
  eachColumn(values, extremes, visit) {
    let first = Math.max(0, this.edges[0] - 1);
    let level = values[Math.min(first, values.length - 1)];
    for (let pixel = 0; pixel <= this.plotWidth; pixel++) {
      const x = TIMELINE.left + pixel;
      const end = Math.min(this.edges[pixel + 1], values.length);
      if (end > first) {
        extremes.between(first, end);
        visit(x, values[first], extremes.low, extremes.high, values[end - 1]);
        level = values[end - 1];
        first = end;
      } else if (first >= values.length) {
        return;
      } else {
        visit(x, level, level, level, level);
      }
    }
  }

  fillLevel(extremes, values, colour) {
    const { context } = this;
    const bottom = this.yOf(this.low);
    context.beginPath();
    context.moveTo(TIMELINE.left, bottom);
    let right = TIMELINE.left;
    this.eachColumn(values, extremes, (x, first, low, high, last) => {
      context.lineTo(x, this.yOf(high));
      context.lineTo(x + 1, this.yOf(last));
      right = x + 1;
    });
    context.lineTo(right, bottom);
    context.closePath();
    context.globalAlpha = 0.35;
    context.fillStyle = colour;
    context.fill();
    context.globalAlpha = 1;
  }

  strokeRun(run, width) {
    const { context } = this;
    let isFirst = true;
    context.beginPath();
    this.eachColumn(run.reserved, run.reservedExtremes, (x, first, low, high, last) => {
      if (isFirst) context.moveTo(x, this.yOf(first));
      isFirst = false;
      context.lineTo(x, this.yOf(first));
      if (low !== high) {
        context.lineTo(x + 0.5, this.yOf(low));
        context.lineTo(x + 0.5, this.yOf(high));
      }
      context.lineTo(x + 1, this.yOf(last));
    });
    context.lineJoin = 'round';
    context.lineWidth = width;
    context.strokeStyle = this.explorer.runColour(run);
    context.stroke();
  }

  // Names stand on their lines; below, where there is another name so near above.
  drawLines(lines) {
    const drawn = lines.filter(({ bytes }) => bytes !== undefined && bytes <= this.most && bytes >= this.low);
    drawn.sort((one, other) => other.bytes - one.bytes);
    let above = -Infinity;
    for (const { bytes, name, colour } of drawn) {
      const isBelow = this.yOf(bytes) - above < 14 || this.yOf(bytes) < TIMELINE.top + 10;
      this.drawLine(bytes, name, colour, isBelow);
      above = this.yOf(bytes) + (isBelow ? 14 : 0);
    }
  }

  drawLine(bytes, name, colour, isNameBelow) {
    const { context } = this;
    const y = Math.round(this.yOf(bytes)) + 0.5;
    const text = `${name} ${bytesText(bytes)}`;
    const right = TIMELINE.left + this.plotWidth - 4;
    context.setLineDash([6, 4]);
    context.lineWidth = 1;
    context.strokeStyle = colour;
    context.beginPath();
    context.moveTo(TIMELINE.left, y);
    context.lineTo(TIMELINE.left + this.plotWidth, y);
    context.stroke();
    context.setLineDash([]);
    context.textAlign = 'right';
    context.textBaseline = isNameBelow ? 'top' : 'bottom';
    // Names are read on areas of any colour.
    context.lineWidth = 3;
    context.strokeStyle = styleColour('panel');
    context.strokeText(text, right, y + (isNameBelow ? 3 : -2));
    context.fillStyle = colour;
    context.fillText(text, right, y + (isNameBelow ? 3 : -2));
  }

  // A tick for each mark; its text where there is room.
  drawMarks() {
    const { context } = this;
    const [from, to] = [TIMELINE.left, TIMELINE.left + this.plotWidth];
    let textEnd = -Infinity;
    let lastX = -Infinity;
    context.textBaseline = 'top';
    context.textAlign = 'left';
    for (const [event, kind, text] of this.explorer.trace.marks) {
      const x = Math.round(this.axis.xOf(event));
      if (x < from || x > to || x === lastX && (kind === 'end' || x < textEnd + 8)) continue;
      lastX = x;
      context.fillStyle = kind === 'recorded oom' ? styleColour('bad') : styleColour('mark');
      context.fillRect(x, 14, 1, 7);
      const name = kind === 'recorded oom' ? 'recorded OOM' : text;
      if (name === null || kind === 'end' || x < textEnd + 8) continue;
      const shown = name.length > 24 ? `${name.slice(0, 23)}…` : name;
      const width = context.measureText(shown).width;
      if (x + width > to) continue;
      context.fillStyle = styleColour('quiet');
      context.fillText(shown, x, 0);
      textEnd = x + width;
    }
  }

  drawOom(run) {
    const { context } = this;
    const x = this.axis.xOf(run.oom.event);
    const y = this.yOf(run.reserved[Math.min(run.oom.event, run.last)]);
    context.lineWidth = 2.5;
    context.strokeStyle = this.explorer.runColour(run);
    context.beginPath();
    for (const side of [-1, 1]) {
      context.moveTo(x - 6, y - 6 * side);
      context.lineTo(x + 6, y + 6 * side);
    }
    context.stroke();
  }

  drawCursor(height) {
    const { context } = this;
    const x = this.axis.xOf(this.explorer.event);
    if (x < TIMELINE.left - 0.5 || x > TIMELINE.left + this.plotWidth + 0.5) return;
    context.fillStyle = styleColour('ink');
    context.fillRect(x - 0.75, TIMELINE.top - 6, 1.5, height - TIMELINE.top - TIMELINE.bottom + 6);
    context.beginPath();
    context.moveTo(x - 5, TIMELINE.top - 8);
    context.lineTo(x + 5, TIMELINE.top - 8);
    context.lineTo(x, TIMELINE.top);
    context.fill();
  }

  drawBrush() {
    if (this.brush === undefined || Math.abs(this.brush.to - this.brush.from) < 4) return;
    const { from, to } = this.brush;
    this.context.globalAlpha = 0.18;
    this.context.fillStyle = styleColour('accent');
    this.context.fillRect(Math.min(from, to), TIMELINE.top, Math.abs(to - from), this.plotHeight);
    this.context.globalAlpha = 1;
  }

  // ---- pointer

  listen() {
    const { canvas } = this;
    canvas.addEventListener('wheel', (event) => this.onWheel(event), { passive: false });
    canvas.addEventListener('pointerdown', (event) => this.onDown(event));
    canvas.addEventListener('pointermove', (event) => this.onMove(event));
    canvas.addEventListener('pointerup', (event) => this.onUp(event));
    canvas.addEventListener('pointercancel', () => this.endBrush());
    canvas.addEventListener('pointerleave', hideTip);
    canvas.addEventListener('dblclick', () => this.explorer.showAll());
  }

  placeIn(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  // Over the axis of bytes, or with Shift, the wheel zooms bytes; else events.
  onWheel(event) {
    event.preventDefault();
    const { x, y } = this.placeIn(event);
    if (event.shiftKey || x < TIMELINE.left) this.zoomBytes(1.0018 ** (event.deltaY || event.deltaX), y);
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.axis.pan(event.deltaX / this.plotWidth);
    else this.axis.zoom(1.0018 ** event.deltaY, x);
  }

  zoomBytes(factor, y) {
    const whole = this.mostBytes();
    const at = Math.max(0, Math.min(whole, this.bytesAt(y)));
    const height = Math.min(whole, Math.max(4096, (this.most - this.low) * factor));
    const share = (at - this.low) / (this.most - this.low);
    const low = Math.max(0, Math.min(whole - height, at - share * height));
    this.bytesView = height < whole ? { low, high: low + height } : undefined;
    this.forget();
    this.explorer.redrawTimeline();
  }

  onDown(event) {
    if (event.button !== 0) return;
    const { x } = this.placeIn(event);
    this.canvas.setPointerCapture(event.pointerId);
    this.brush = { from: x, to: x, isScrub: event.pointerType !== 'mouse' };
    if (this.brush.isScrub) this.explorer.select(this.axis.eventAt(x));
  }

  onMove(event) {
    const { x, y } = this.placeIn(event);
    if (this.brush !== undefined) {
      this.brush.to = Math.max(TIMELINE.left, Math.min(TIMELINE.left + this.plotWidth, x));
      if (this.brush.isScrub) this.explorer.select(this.axis.eventAt(x));
      else this.explorer.redrawTimeline();
    }
    if (x >= TIMELINE.left) showTip(this.describe(x, y), event.clientX, event.clientY);
  }

  describe(x, y) {
    const { explorer } = this;
    const found = this.areaAt(x, y);
    const event = this.axis.eventAt(x);
    if (found === undefined) return explorer.describe(event);
    if (found === 'rest') return [`event ${countText(event)}`, 'blocks too small to be drawn apart here: zoom in to see them'];
    return explorer.areas === 'segments' ? explorer.describeSegment(found) : explorer.describeBlock(found, event);
  }

  onUp(event) {
    const { brush } = this;
    this.endBrush();
    if (brush === undefined || brush.isScrub) return;
    if (Math.abs(brush.to - brush.from) >= 4) {
      const [from, to] = [brush.from, brush.to].map((x) => this.axis.valueAt(x));
      this.axis.set(Math.min(from, to), Math.max(from, to));
      return;
    }
    const { x, y } = this.placeIn(event);
    const found = this.areaAt(x, y);
    this.explorer.select(this.axis.eventAt(x));
    if (typeof found === 'number' && this.explorer.areas === 'blocks')
      this.explorer.pin(this.explorer.run.request[found]);
  }

  endBrush() {
    this.brush = undefined;
    this.explorer.redrawTimeline();
  }
}
