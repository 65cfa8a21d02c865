// The axis of events, or of time, that the timeline and its overview share: which part is seen, and
// where an event lies on it.

class TimeAxis {
  constructor(explorer) {
    this.explorer = explorer;
    this.left = 0;
    this.width = 100;
  }

  get trace() {
    return this.explorer.trace;
  }

  get isByTime() {
    return this.explorer.axisKind === 'time' && this.trace.times !== undefined;
  }

  of(event) {
    return this.isByTime ? this.trace.times[event] : event;
  }

  whole() {
    const from = this.of(this.trace.start);
    return { from, to: Math.max(this.of(this.trace.last), from + 1) };
  }

  reset() {
    this.view = this.whole();
  }

  get isWhole() {
    const whole = this.whole();
    return this.view.from <= whole.from && this.view.to >= whole.to;
  }

  xOf(event) {
    const { from, to } = this.view;
    return this.left + (this.of(event) - from) / (to - from) * this.width;
  }

  valueAt(x) {
    const { from, to } = this.view;
    return from + (x - this.left) / this.width * (to - from);
  }

  // The first event at or right of a place on the axis.
  firstFrom(value) {
    const last = this.trace.last;
    if (!this.isByTime) return Math.max(0, Math.min(last + 1, Math.ceil(value)));
    const { times } = this.trace;
    let low = 0;
    let high = last + 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  eventFrom(x) {
    return this.firstFrom(this.valueAt(x));
  }

  // The event whose level is drawn at a place: the last at or left of it.
  eventAt(x) {
    const event = this.eventFrom(x);
    const isOn = event <= this.trace.last && this.xOf(event) - x < 0.5;
    return Math.max(this.trace.start, Math.min(this.trace.last, isOn ? event : event - 1));
  }

  // A span of the axis inside the whole.
  set(from, to) {
    const whole = this.whole();
    const least = Math.min(this.isByTime ? 20 : 8, whole.to - whole.from);
    const width = Math.min(Math.max(to - from, least), whole.to - whole.from);
    const begin = Math.max(whole.from, Math.min(from, whole.to - width));
    this.view = { from: begin, to: begin + width };
    this.explorer.redrawTimeline();
  }

  zoom(factor, x) {
    const { from, to } = this.view;
    const at = this.valueAt(x);
    this.set(at - (at - from) * factor, at + (to - at) * factor);
  }

  pan(share) {
    const { from, to } = this.view;
    this.set(from + share * (to - from), to + share * (to - from));
  }

  // To the start of the run, or to its end.
  toEdge(direction) {
    const whole = this.whole();
    const width = this.view.to - this.view.from;
    if (direction < 0) this.set(whole.from, whole.from + width);
    else this.set(whole.to - width, whole.to);
  }

  // Moves the view where the event is outside it.
  show(event) {
    const { from, to } = this.view;
    const at = this.of(event);
    if (at < from || at > to) this.set(at - (to - from) / 2, at + (to - from) / 2);
  }

  // Of each pixel, the first event and the first of the next; equal ones: no event lies in it.
  columns(count, scale) {
    const edges = new Uint32Array(count + 1);
    for (let i = 0; i <= count; i++) edges[i] = this.eventFrom(this.left + i / scale);
    return edges;
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

// The power of two at or above a size.
function binaryStep(least) {
  return 2 ** Math.max(0, Math.ceil(Math.log2(Math.max(least, 1))));
}
