// The whole run in a strip below the timeline: which part of it is seen, where the cursor is, and where
// what is searched for was requested. Dragging moves the part; the arrow keys do too.

const MINIMAP = { height: 44 };

class Minimap {
  constructor(explorer) {
    this.explorer = explorer;
    this.axis = explorer.axis;
    this.canvas = explorer.byId('minimap');
    this.kept = document.createElement('canvas');
    this.isStale = true;
    this.canvas.addEventListener('pointerdown', (event) => this.onDown(event));
    this.canvas.addEventListener('pointermove', (event) => this.onMove(event));
    for (const name of ['pointerup', 'pointercancel'])
      this.canvas.addEventListener(name, () => {
        this.grip = undefined;
      });
    this.canvas.addEventListener('keydown', (event) => this.onKey(event));
  }

  forget() {
    this.isStale = true;
  }

  // ---- the whole run, whatever part of it the timeline shows

  xOfValue(value) {
    const { from, to } = this.axis.whole();
    return TIMELINE.left + (value - from) / (to - from) * this.width;
  }

  valueAt(x) {
    const { from, to } = this.axis.whole();
    return from + (x - TIMELINE.left) / this.width * (to - from);
  }

  draw() {
    const { context, width, height, ratio } = fitCanvas(this.canvas, MINIMAP.height);
    this.width = Math.max(50, width - TIMELINE.left - TIMELINE.right);
    if (this.isStale || this.keptWidth !== width * ratio) this.drawKept(width, height, ratio);
    context.drawImage(this.kept, 0, 0, width, height);
    this.drawWindow(context, height);
    context.fillStyle = styleColour('ink');
    context.fillRect(this.xOfValue(this.axis.of(this.explorer.event)) - 0.75, 0, 1.5, height);
    this.tell();
  }

  drawKept(width, height, ratio) {
    this.isStale = false;
    this.keptWidth = width * ratio;
    sizeCanvas(this.kept, width * ratio, height * ratio);
    const context = this.kept.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.fillStyle = styleColour('unheld');
    context.fillRect(TIMELINE.left, 0, this.width, height);
    const { run } = this.explorer;
    this.drawLevel(context, height, run.reservedExtremes, run.reserved, 0.35, styleColour('mark'));
    this.drawLevel(context, height, run.activeExtremes, run.active, 0.8, styleColour('part-requested'));
    this.drawMatches(context, height);
  }

  drawLevel(context, height, extremes, values, alpha, colour) {
    const most = Math.max(1, this.explorer.run.peak_reserved_bytes);
    let first = this.axis.trace.start;
    context.globalAlpha = alpha;
    context.fillStyle = colour;
    for (let x = 0; x < this.width && first < values.length; x++) {
      const end = Math.min(values.length, this.axis.firstFrom(this.valueAt(TIMELINE.left + x + 1)));
      if (end > first) extremes.between(first, end);
      const high = end > first ? extremes.high : values[Math.max(0, first - 1)];
      const pixels = high / most * (height - 4);
      context.fillRect(TIMELINE.left + x, height - pixels, 1, pixels);
      first = Math.max(first, end);
    }
    context.globalAlpha = 1;
  }

  drawMatches(context, height) {
    const { search } = this.explorer;
    if (search.events === undefined) return;
    context.fillStyle = styleColour('found');
    let last = -Infinity;
    for (const event of search.events) {
      const x = Math.round(this.xOfValue(this.axis.of(event)));
      if (x === last) continue;
      last = x;
      context.fillRect(x, height - 8, 1.5, 8);
    }
  }

  drawWindow(context, height) {
    const { from, to } = this.axis.view;
    const [left, right] = [this.xOfValue(from), this.xOfValue(to)];
    context.globalAlpha = 0.55;
    context.fillStyle = styleColour('panel');
    context.fillRect(TIMELINE.left, 0, left - TIMELINE.left, height);
    context.fillRect(right, 0, TIMELINE.left + this.width - right, height);
    context.globalAlpha = 1;
    context.strokeStyle = styleColour('accent');
    context.lineWidth = 1.5;
    context.strokeRect(left + 0.75, 0.75, Math.max(3, right - left - 1.5), height - 1.5);
  }

  tell() {
    const whole = this.axis.whole();
    const { from, to } = this.axis.view;
    const [first, last] = [this.axis.firstFrom(from), Math.min(this.axis.trace.last, this.axis.firstFrom(to))];
    this.canvas.setAttribute('aria-valuenow', Math.round(100 * (from - whole.from) / (whole.to - whole.from)));
    this.canvas.setAttribute('aria-valuetext', `events ${countText(first)} to ${countText(last)} are seen`);
  }

  // ---- pointer and keys

  xIn(event) {
    return event.clientX - this.canvas.getBoundingClientRect().left;
  }

  // Inside the window it is taken along; elsewhere its middle comes to the pointer first.
  onDown(event) {
    if (event.button !== 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    const { from, to } = this.axis.view;
    const value = this.valueAt(this.xIn(event));
    this.grip = value >= from && value <= to && !this.axis.isWhole ? value - from : (to - from) / 2;
    this.onMove(event);
  }

  onMove(event) {
    if (this.grip === undefined) return;
    const { from, to } = this.axis.view;
    const begin = this.valueAt(this.xIn(event)) - this.grip;
    this.axis.set(begin, begin + to - from);
  }

  onKey(event) {
    const middle = TIMELINE.left + this.axis.width / 2;
    const acts = {
      ArrowLeft: () => this.axis.pan(-0.1),
      ArrowRight: () => this.axis.pan(0.1),
      PageUp: () => this.axis.pan(-1),
      PageDown: () => this.axis.pan(1),
      Home: () => this.axis.toEdge(-1),
      End: () => this.axis.toEdge(1),
      '+': () => this.axis.zoom(0.5, middle),
      '-': () => this.axis.zoom(2, middle),
    };
    onKeys(event, acts);
  }
}

// Runs what a key stands for; keys with Control and the like belong to the browser.
function onKeys(event, acts) {
  if (acts[event.key] === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  event.stopPropagation();
  acts[event.key]();
}
