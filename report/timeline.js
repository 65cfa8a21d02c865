// The timeline: reserved bytes of every run, requested bytes of the selected one, its bound, marks.
// Each pixel shows the lowest and the highest of its events, so that no peak is lost.

const TIMELINE = { height: 300, left: 74, right: 12, top: 20, bottom: 34 };

class Timeline {
  constructor(explorer) {
    this.explorer = explorer;
    this.canvas = byId('timeline');
    this.listen();
  }

  // ---- axes

  get isByTime() {
    return this.explorer.axis === 'time' && this.trace.times !== undefined;
  }

  get trace() {
    return this.explorer.trace;
  }

  axisOf(event) {
    return this.isByTime ? this.trace.times[event] : event;
  }

  wholeView() {
    const from = this.axisOf(this.trace.start);
    return { from, to: Math.max(this.axisOf(this.trace.last), from + 1) };
  }

  reset() {
    this.view = this.wholeView();
  }

  xOf(event) {
    const { from, to } = this.view;
    return TIMELINE.left + (this.axisOf(event) - from) / (to - from) * this.plotWidth;
  }

  // The first event at or right of a place.
  eventFrom(x) {
    const { from, to } = this.view;
    const value = from + (x - TIMELINE.left) / this.plotWidth * (to - from);
    const last = this.trace.last;
    if (!this.isByTime) return Math.max(0, Math.min(last + 1, Math.ceil(value)));
    let low = 0;
    let high = last + 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.trace.times[middle] < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // The event whose level is drawn at a place: the last at or left of it.
  eventAt(x) {
    const event = this.eventFrom(x);
    const isOn = event <= this.trace.last && this.xOf(event) - x < 0.5;
    return Math.max(this.trace.start, Math.min(this.trace.last, isOn ? event : event - 1));
  }

  // A span of the axis inside the whole.
  setView(from, to) {
    const whole = this.wholeView();
    const least = Math.min(this.isByTime ? 20 : 8, whole.to - whole.from);
    const width = Math.min(Math.max(to - from, least), whole.to - whole.from);
    const begin = Math.max(whole.from, Math.min(from, whole.to - width));
    this.view = { from: begin, to: begin + width };
    this.explorer.redraw();
  }

  zoom(factor, x) {
    const { from, to } = this.view;
    const at = from + (x - TIMELINE.left) / this.plotWidth * (to - from);
    this.setView(at - (at - from) * factor, at + (to - at) * factor);
  }

  pan(share) {
    const { from, to } = this.view;
    this.setView(from + share * (to - from), to + share * (to - from));
  }

  // Moves the view where the event is outside it.
  show(event) {
    const { from, to } = this.view;
    const at = this.axisOf(event);
    if (at < from || at > to) this.setView(at - (to - from) / 2, at + (to - from) / 2);
  }

  // ---- drawing

  draw() {
    const { context, width, height } = fitCanvas(this.canvas, TIMELINE.height);
    this.context = context;
    this.plotWidth = Math.max(50, width - TIMELINE.left - TIMELINE.right);
    this.plotHeight = height - TIMELINE.top - TIMELINE.bottom;
    const run = this.explorer.run;
    const runs = this.explorer.drawnRuns();
    this.most = Math.max(1, ...this.trace.runs.filter((one) => one.is_drawn).map((one) => one.peak_reserved_bytes));
    const capacity = run.capacity_bytes;
    if (capacity !== undefined && capacity < 1.6 * this.most) this.most = Math.max(this.most, capacity);
    this.most *= 1.04;
    this.drawAxes(width);
    context.save();
    context.beginPath();
    context.rect(TIMELINE.left, 0, this.plotWidth, height);
    context.clip();
    this.fillLevel(run.requestedExtremes, run.requested, styleColour('part-requested'));
    for (const one of runs) if (one !== run) this.strokeRun(one, 1.25);
    this.strokeRun(run, 2.25);
    this.drawLines([
      { bytes: this.trace.bound_bytes, name: 'bound', colour: styleColour('bound') },
      { bytes: capacity, name: 'capacity', colour: styleColour('bad') },
    ]);
    this.drawMarks();
    for (const one of runs) if (one.oom !== null) this.drawOom(one);
    this.drawCursor(height);
    context.restore();
    this.drawBrush();
  }

  yOf(bytes) {
    return TIMELINE.top + this.plotHeight * (1 - bytes / this.most);
  }

  drawAxes(width) {
    const context = this.context;
    context.font = '12px system-ui, sans-serif';
    context.fillStyle = styleColour('quiet');
    context.strokeStyle = styleColour('grid');
    context.lineWidth = 1;
    context.textBaseline = 'middle';
    context.textAlign = 'right';
    const step = byteStep(this.most / 5);
    for (let bytes = 0; bytes <= this.most; bytes += step) {
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
    const context = this.context;
    const { from, to } = this.view;
    const bottom = TIMELINE.top + this.plotHeight;
    const step = decimalStep((to - from) / Math.max(2, this.plotWidth / 110));
    context.textBaseline = 'top';
    context.textAlign = 'center';
    for (let value = Math.ceil(from / step) * step; value <= to; value += step) {
      const x = TIMELINE.left + (value - from) / (to - from) * this.plotWidth;
      const text = this.isByTime ? `${Number((value / 1e6).toPrecision(7))} s` : countText(value);
      const half = context.measureText(text).width / 2;
      if (x + half > TIMELINE.left + this.plotWidth + TIMELINE.right) continue;
      context.fillRect(Math.round(x), bottom, 1, 4);
      context.fillText(text, x, bottom + 8);
    }
  }

  // Points of a level along the pixels, each with the lowest and highest of its events.
  eachColumn(values, extremes, visit) {
    let first = Math.max(0, this.eventFrom(TIMELINE.left) - 1);
    let level = values[Math.min(first, values.length - 1)];
    for (let pixel = 0; pixel <= this.plotWidth; pixel++) {
      const x = TIMELINE.left + pixel;
      const end = Math.min(this.eventFrom(x + 1), values.length);
      if (end > first) {
        const { low, high } = extremes.between(first, end);
        visit(x, values[first], low, high, values[end - 1]);
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
    const context = this.context;
    const bottom = this.yOf(0);
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
    const context = this.context;
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
    const drawn = lines.filter(({ bytes }) => bytes !== undefined && bytes <= this.most);
    drawn.sort((one, other) => other.bytes - one.bytes);
    let above = -Infinity;
    for (const { bytes, name, colour } of drawn) {
      const isBelow = this.yOf(bytes) - above < 14;
      this.drawLine(bytes, name, colour, isBelow);
      above = this.yOf(bytes) + (isBelow ? 14 : 0);
    }
  }

  drawLine(bytes, name, colour, isNameBelow) {
    const context = this.context;
    const y = Math.round(this.yOf(bytes)) + 0.5;
    context.setLineDash([6, 4]);
    context.lineWidth = 1;
    context.strokeStyle = colour;
    context.beginPath();
    context.moveTo(TIMELINE.left, y);
    context.lineTo(TIMELINE.left + this.plotWidth, y);
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = colour;
    context.textAlign = 'right';
    context.textBaseline = isNameBelow ? 'top' : 'bottom';
    context.fillText(`${name} ${bytesText(bytes)}`, TIMELINE.left + this.plotWidth - 4, y + (isNameBelow ? 3 : -2));
  }

  // A tick for each mark; its text where there is room.
  drawMarks() {
    const context = this.context;
    const [from, to] = [TIMELINE.left, TIMELINE.left + this.plotWidth];
    let textEnd = -Infinity;
    let lastX = -Infinity;
    context.textBaseline = 'top';
    context.textAlign = 'left';
    for (const [event, kind, text] of this.trace.marks) {
      const x = Math.round(this.xOf(event));
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
    const context = this.context;
    const x = this.xOf(run.oom.event);
    const y = this.yOf(run.reserved[run.last]);
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
    const context = this.context;
    const x = this.xOf(this.explorer.event);
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

  // ---- pointer and keys

  listen() {
    const canvas = this.canvas;
    canvas.addEventListener('wheel', (event) => this.onWheel(event), { passive: false });
    canvas.addEventListener('pointerdown', (event) => this.onDown(event));
    canvas.addEventListener('pointermove', (event) => this.onMove(event));
    canvas.addEventListener('pointerup', (event) => this.onUp(event));
    canvas.addEventListener('pointercancel', () => this.endBrush());
    canvas.addEventListener('pointerleave', hideTip);
    canvas.addEventListener('dblclick', () => {
      this.reset();
      this.explorer.redraw();
    });
  }

  xIn(event) {
    return event.clientX - this.canvas.getBoundingClientRect().left;
  }

  onWheel(event) {
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(event.deltaX / this.plotWidth);
    else this.zoom(1.0018 ** event.deltaY, this.xIn(event));
  }

  onDown(event) {
    const x = this.xIn(event);
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.brush = { from: x, to: x, isScrub: event.pointerType !== 'mouse' };
    if (this.brush.isScrub) this.explorer.select(this.eventAt(x));
  }

  onMove(event) {
    const x = this.xIn(event);
    if (this.brush !== undefined) {
      this.brush.to = Math.max(TIMELINE.left, Math.min(TIMELINE.left + this.plotWidth, x));
      if (this.brush.isScrub) this.explorer.select(this.eventAt(x));
      else this.explorer.redraw();
    }
    if (x >= TIMELINE.left) showTip(this.explorer.describe(this.eventAt(x)), event.clientX, event.clientY);
  }

  onUp(event) {
    const brush = this.brush;
    this.endBrush();
    if (brush === undefined || brush.isScrub) return;
    if (Math.abs(brush.to - brush.from) < 4) {
      this.explorer.select(this.eventAt(this.xIn(event)));
      return;
    }
    const { from, to } = this.view;
    const valueAt = (x) => from + (x - TIMELINE.left) / this.plotWidth * (to - from);
    this.setView(valueAt(Math.min(brush.from, brush.to)), valueAt(Math.max(brush.from, brush.to)));
  }

  endBrush() {
    this.brush = undefined;
    this.explorer.redraw();
  }
}

// The round step at or above a size: 1, 2 or 5 of a decimal power.
function decimalStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= least);
}

// The same in bytes: such a step of KiB, MiB, GiB.
function byteStep(least) {
  const unit = 1024 ** Math.max(0, Math.floor(Math.log2(Math.max(least, 1)) / 10));
  return decimalStep(least / unit) * unit;
}
