// The events around the cursor, one a line. Only the lines that are seen exist: a million events need as
// many elements as a hundred.

const EVENT_LIST = { row: 22, heightMax: 6000000 };

class EventList {
  constructor(explorer) {
    this.explorer = explorer;
    this.box = explorer.byId('events');
    this.extent = explorer.byId('events-extent');
    this.first = 0;
    this.lines = [];
    this.box.addEventListener('scroll', () => this.onScroll());
    this.box.addEventListener('wheel', (event) => this.onWheel(event), { passive: false });
    this.box.addEventListener('keydown', (event) => this.onKey(event));
    this.box.addEventListener('click', (event) => this.onClick(event));
  }

  // ---- which events: all, or those that were found

  get found() {
    const { search } = this.explorer;
    const isOnly = this.explorer.byId('search-only').checked;
    return isOnly && search.events !== undefined && search.events.length > 0 ? search.events : undefined;
  }

  get count() {
    return this.found !== undefined ? this.found.length : this.explorer.trace.events - this.explorer.trace.start;
  }

  eventOf(line) {
    return this.found !== undefined ? this.found[line] : this.explorer.trace.start + line;
  }

  lineOf(event) {
    if (this.found === undefined) return event - this.explorer.trace.start;
    return Math.max(0, firstAbove(this.found, event) - 1);
  }

  // ---- scrolling: a box as high as all lines, as far as browsers can

  get height() {
    return Math.min(this.count * EVENT_LIST.row, EVENT_LIST.heightMax);
  }

  get seen() {
    return Math.max(1, Math.floor(this.box.clientHeight / EVENT_LIST.row));
  }

  get lastFirst() {
    return Math.max(0, this.count - this.seen);
  }

  scrollOf(first) {
    const reach = Math.max(0, this.height - this.box.clientHeight);
    return this.lastFirst > 0 ? Math.round(first / this.lastFirst * reach) : 0;
  }

  onScroll() {
    if (this.scrolled === Math.round(this.box.scrollTop)) return;
    const reach = Math.max(1, this.height - this.box.clientHeight);
    this.scrolled = Math.round(this.box.scrollTop);
    this.first = Math.round(this.box.scrollTop / reach * this.lastFirst);
    this.explorer.redraw();
  }

  // Where lines are more than the box can be high, the wheel goes by lines nevertheless.
  onWheel(event) {
    if (this.count * EVENT_LIST.row <= EVENT_LIST.heightMax) return;
    event.preventDefault();
    this.moveTo(this.first + Math.sign(event.deltaY) * Math.max(1, Math.round(Math.abs(event.deltaY) / EVENT_LIST.row)));
    this.explorer.redraw();
  }

  moveTo(first) {
    this.first = Math.max(0, Math.min(this.lastFirst, first));
    this.scrolled = this.scrollOf(this.first);
    if (Math.round(this.box.scrollTop) !== this.scrolled) this.box.scrollTop = this.scrolled;
    this.scrolled = Math.round(this.box.scrollTop);
  }

  // ---- drawing

  draw() {
    const height = `${this.height}px`;
    if (this.extent.style.height !== height) this.extent.style.height = height;
    const line = this.lineOf(this.explorer.event);
    if (this.event !== this.explorer.event || this.lastCount !== this.count) {
      this.event = this.explorer.event;
      this.lastCount = this.count;
      if (line < this.first || line >= this.first + this.seen) this.moveTo(line - Math.floor(this.seen / 2));
    }
    const count = Math.min(this.seen + 1, this.count - this.first);
    const top = this.box.scrollTop;
    while (this.lines.length < count) this.addLine();
    this.lines.forEach((shown, i) => {
      shown.row.hidden = i >= count;
      if (i < count) this.fill(shown, this.first + i, top + i * EVENT_LIST.row);
    });
    this.box.setAttribute('aria-activedescendant', this.lineId(line));
  }

  lineId(line) {
    return `${this.box.id}-line-${line}`;
  }

  addLine() {
    const row = element('div', undefined, 'event-line');
    row.setAttribute('role', 'option');
    const cells = ['number', 'when', 'what', 'size', 'who', 'device'].map((name) => element('span', '', name));
    row.append(...cells);
    this.extent.append(row);
    this.lines.push({ row, cells });
  }

  fill({ row, cells }, line, y) {
    const { trace, run, search } = this.explorer;
    const event = this.eventOf(line);
    const request = requestOf(trace, event);
    const bytes = eventBytes(trace, event);
    const isOom = run.oom !== null && run.oom.event === event;
    const texts = [countText(event), trace.times === undefined ? '' : timeText(trace.times[event]),
      isOom ? 'out of memory' : eventKind(trace, event), bytes > 0 ? bytesText(bytes) : '',
      request === NEVER ? '' : requestName(trace, request), event > run.last ? 'the run has ended before' : run.calls.textAt(event)];
    texts.forEach((text, i) => setText(cells[i], text));
    const name = ['event-line', ...(event === this.explorer.event ? ['selected'] : []), ...(isOom ? ['bad'] : []),
      ...(request !== NEVER && request === this.explorer.pinned ? ['pinned'] : []),
      ...(request !== NEVER && search.matched !== undefined && search.matched[request] === 1 ? ['found'] : [])].join(' ');
    if (row.className !== name) row.className = name;
    row.id = this.lineId(line);
    row.dataset.event = event;
    row.setAttribute('aria-selected', String(event === this.explorer.event));
    row.style.transform = `translateY(${y}px)`;
  }

  // ---- pointer and keys

  onClick(event) {
    const row = event.target.closest('.event-line');
    if (row === null) return;
    this.explorer.select(Number(row.dataset.event));
  }

  onKey(event) {
    const line = this.lineOf(this.explorer.event);
    const to = (next) => this.explorer.select(this.eventOf(Math.max(0, Math.min(this.count - 1, next))));
    const acts = {
      ArrowUp: () => to(line - 1),
      ArrowDown: () => to(line + 1),
      PageUp: () => to(line - this.seen),
      PageDown: () => to(line + this.seen),
      Home: () => to(0),
      End: () => to(this.count - 1),
      Enter: () => this.pinLine(),
      ' ': () => this.pinLine(),
      Escape: () => this.explorer.pin(undefined),
    };
    onKeys(event, acts);
  }

  pinLine() {
    const request = requestOf(this.explorer.trace, this.explorer.event);
    if (request !== NEVER) this.explorer.pin(request);
  }
}
