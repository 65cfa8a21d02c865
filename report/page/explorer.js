// The part of the page that moves: which trace, run and event are shown, and what follows from it. A
// page has one for its own recording and one for a second that was opened beside it; the elements of
// the second have '-2' behind their ids.

const LISTS_MS = 100;

class Explorer {
  constructor(traces, suffix) {
    this.traces = traces;
    this.suffix = suffix;
    this.colour = 'site';
    this.layout = 'address';
    this.areas = 'blocks';
    this.axisKind = 'event';
    this.onSelect = () => {};
    this.listsDrawnAt = 0;
    this.axis = new TimeAxis(this);
    this.timeline = new Timeline(this);
    this.minimap = new Minimap(this);
    this.map = new MemoryMap(this);
    this.search = new Search(this);
    this.flame = new FlameGraph(this);
    this.pinPanel = new PinPanel(this);
    this.list = new EventList(this);
    this.statePanel = new StatePanel(this);
    this.sitesPanel = new SitesPanel(this);
    new ExplorerControls(this).listen();
  }

  byId(id) {
    return byId(id + this.suffix);
  }

  // ---- what is selected

  // What is wanted last counts, even if something else was still being unpacked.
  async open(wanted) {
    this.wish = wanted;
    const drawn = this.traces.filter((trace) => trace.is_drawn && trace.runs.some((run) => run.is_drawn));
    const trace = drawn.includes(this.traces[wanted.trace]) ? this.traces[wanted.trace]
      : drawn.find((one) => one.is_main) || drawn[0];
    const runs = trace.runs.filter((run) => run.is_drawn);
    const run = runs.includes(trace.runs[wanted.policy]) ? trace.runs[wanted.policy] : runs[0];
    await trace.load();
    await run.load();
    if (this.wish !== wanted) return;
    run.prepare();
    const isOther = trace !== this.trace;
    if (run !== this.run) this.map.focused = undefined;
    this.trace = trace;
    this.run = run;
    if (isOther) this.startTrace();
    if (Number.isFinite(wanted.block) && wanted.block < trace.requests) this.pinned = wanted.block;
    this.recolour();
    this.fillPickers();
    this.select(Number.isFinite(wanted.event) ? wanted.event : isOther ? run.peak_event : this.event);
    await this.loadOthers(trace);
  }

  // The selected run is shown before the lines of the others are unpacked.
  async loadOthers(trace) {
    for (const run of trace.runs) {
      if (!run.is_drawn || run.isLoaded) continue;
      await new Promise((resume) => setTimeout(resume, 0));
      await run.load();
      if (trace === this.trace) this.forget();
    }
    this.byId('explorer').dataset.loaded = trace.number;
  }

  // Of the trace, those whose lines can be drawn already.
  drawnRuns() {
    return this.trace.runs.filter((run) => run.isLoaded);
  }

  startTrace() {
    this.group = undefined;
    this.pinned = undefined;
    this.axis.reset();
    this.timeline.resetBytes();
    this.search.run();
    this.byId('pick-axis').disabled = this.trace.times === undefined;
    this.byId('pick-colour').querySelector('[value=purpose]').disabled = !this.trace.hasPurposes;
    const slider = this.byId('event-slider');
    slider.min = this.trace.start;
    slider.max = this.trace.last;
    this.byId('event-number').max = this.trace.last;
  }

  select(event) {
    const last = Math.max(this.trace.start, this.run.last);
    this.event = Math.max(this.trace.start, Math.min(last, Math.round(event)));
    this.axis.show(this.event);
    this.onSelect(this);
    this.redraw();
  }

  // A request of the trace, or undefined. The other run's block of it is shown when that is selected.
  pin(request) {
    if (request === this.pinned) return;
    this.pinned = request;
    this.say(request === undefined ? 'unpinned' : `pinned ${requestName(this.trace, request)}`);
    this.forget();
    this.tellLater();
  }

  highlight(group) {
    this.group = group;
    this.relight();
  }

  // The requests that stand out: those found, and those of the group that was pressed.
  relight() {
    const { group, search } = this;
    const { of } = this.groups;
    if (group === undefined) this.lit = search.matched;
    else this.lit = Uint8Array.from(of, (one, i) =>
      (one === group && (search.matched === undefined || search.matched[i] === 1) ? 1 : 0));
    this.forget();
  }

  // Who holds the memory is listed by what blocks are coloured by: sites, stacks or purposes.
  get groups() {
    return this.trace.groupsBy(this.colour);
  }

  get isColouredByGroup() {
    return GROUP_KINDS.includes(this.colour);
  }

  recolour() {
    this.colouring = makeColouring(this.colour, this.run);
    this.relight();
  }

  setColour(kind) {
    const { groups } = this;
    this.colour = kind;
    if (this.groups !== groups) this.group = undefined;
    this.recolour();
  }

  showAll() {
    this.axis.reset();
    this.timeline.resetBytes();
    this.redraw();
  }

  // The first colour is that of requested bytes.
  runColour(run) {
    const colours = groupColours();
    return colours[1 + run.number % (colours.length - 1)];
  }

  // ---- what is shown

  // What is kept as a picture is drawn anew.
  forget() {
    this.timeline.forget();
    this.minimap.forget();
    this.legendKey = undefined;
    this.redraw();
  }

  // Its elements are gone: what was still to be drawn is not.
  close() {
    this.isClosed = true;
    for (const timer of [this.listsTimer, this.sitesPanel.later, this.search.timer]) clearTimeout(timer);
    this.resizes.disconnect();
    this.flame.close();
  }

  // All drawing of one moment happens once.
  redraw() {
    this.isAllAsked = true;
    this.redrawTimeline();
  }

  // What follows from the part of the axis that is seen, and from nothing else.
  redrawTimeline() {
    if (this.isDrawing || this.event === undefined) return;
    this.isDrawing = true;
    requestAnimationFrame(() => this.drawIfAsked());
  }

  drawIfAsked() {
    if (!this.isDrawing || this.isClosed) return;
    this.isDrawing = false;
    this.draw();
  }

  // For paper: everything, also what would follow a moment later.
  drawNow() {
    this.drawIfAsked();
    if (this.state === undefined) return;
    this.drawLists(true);
    this.sitesPanel.fillRows(0, SITES_SHOWN);
  }

  // Of what is selected, drawn already or not.
  currentState() {
    if (this.state === undefined || this.state.event !== this.event || this.state.run !== this.run)
      this.state = this.run.stateAt(this.event);
    return this.state;
  }

  draw() {
    this.currentState();
    this.timeline.draw();
    this.minimap.draw();
    if (!this.isAllAsked) return;
    this.isAllAsked = false;
    this.map.draw();
    this.statePanel.draw();
    this.pinPanel.show();
    this.fillLegends();
    this.fillControls();
    this.tellLater();
    this.drawListsSoon();
  }

  // The two lists and the flame graph follow the first step at once, and then ten times a second: nobody reads them faster,
  // and the slider goes more smoothly.
  drawListsSoon() {
    if (this.listsTimer !== undefined) return;
    const wait = this.listsDrawnAt + LISTS_MS - performance.now();
    if (wait > 0) this.listsTimer = setTimeout(() => this.drawLists(), wait);
    else this.drawLists();
  }

  drawLists(isForPaper = false) {
    if (this.isClosed) return;
    clearTimeout(this.listsTimer);
    this.listsTimer = undefined;
    this.listsDrawnAt = performance.now();
    // The one that asks for sizes comes first: the browser lays out once.
    this.list.draw();
    this.sitesPanel.draw();
    this.flame.draw(isForPaper);
    this.byId('explorer').dataset.shown = `${this.trace.number} ${this.run.number} ${this.event}`;
  }

  fillControls() {
    const lines = this.describe(this.event);
    const canvas = this.byId('timeline');
    this.byId('event-number').value = this.event;
    this.byId('event-slider').value = this.event;
    setText(this.byId('event-text'), lines.join(' · '));
    this.byId('to-oom').hidden = this.run.oom === null;
    canvas.setAttribute('aria-valuemin', this.trace.start);
    canvas.setAttribute('aria-valuemax', this.run.last);
    canvas.setAttribute('aria-valuenow', this.event);
    canvas.setAttribute('aria-valuetext', lines.slice(0, 3).join(', '));
  }

  fillLegends() {
    const isWaiting = this.state.waitingCount > 0;
    const key = `${this.run.number} ${isWaiting} ${this.layout} ${this.areas} ${this.colour}`;
    if (key === this.legendKey) return;
    this.legendKey = key;
    fillLegend(this.byId('timeline-legend'), [
      ...this.drawnRuns().map((run) => [this.runColour(run), `${run.label}${run === this.run ? ' (selected)' : ''}: reserved`]),
      ...(this.areas === 'levels' ? [[styleColour('part-requested'), 'requested']] : []),
    ]);
    fillLegend(this.byId('map-legend'), [...this.colouring.legend(), [styleColour('hole'), 'free'],
      ...(isWaiting ? [[styleColour('part-waiting'), 'waiting']] : []),
      ...(this.layout === 'address' ? [[styleColour('unheld'), 'not held']] : [])]);
  }

  describe(event) {
    const { trace, run } = this;
    const lines = [`event ${countText(event)}`];
    if (trace.times !== undefined) lines.push(timeText(trace.times[event]));
    lines.push(describeAction(run, event));
    if (event > run.last) return [...lines, `${run.label} has stopped before`];
    return [...lines, `requested ${bytesText(run.requested[event])}`,
      ...this.drawnRuns().filter((one) => event <= one.last)
        .map((one) => `reserved ${bytesText(one.reserved[event])} (${one.label})`)];
  }

  describeBlock(block, event) {
    return describeBlock(this.run, block, event);
  }

  describeSegment(segment) {
    return describeSegment(this.run, segment);
  }

  // To those who listen to the page.
  say(text) {
    this.byId('spoken').textContent = text;
  }

  fillPickers() {
    const fill = (target, items, selected) => {
      target.replaceChildren(...items.map(([value, text]) => {
        const option = element('option', text);
        option.value = value;
        option.selected = value === selected;
        return option;
      }));
    };
    fill(this.byId('pick-trace'), this.traces.filter((trace) => trace.is_drawn).map((trace) => [trace.number, trace.name]),
      this.trace.number);
    fill(this.byId('pick-run'), this.trace.runs.filter((run) => run.is_drawn).map((run) => [run.number, run.label]),
      this.run.number);
  }

  // ---- the address of the page says what is selected: #trace=0&policy=1&event=1234&block=56

  // Some time after the last step: browsers limit how often an address may change.
  tellLater() {
    if (this.suffix !== '') return;
    clearTimeout(this.telling);
    this.telling = setTimeout(() => this.tell(), 200);
  }

  tell() {
    const block = this.pinned === undefined ? '' : `&block=${this.pinned}`;
    const hash = `#trace=${this.trace.number}&policy=${this.run.number}&event=${this.event}${block}`;
    if (hash === location.hash) return;
    try {
      history.replaceState(null, '', hash);
    } catch (refused) {
      // It is only a convenience.
    }
  }

  wanted() {
    const words = new URLSearchParams(location.hash.slice(1));
    const number = (name) => (words.has(name) ? Number(words.get(name)) : NaN);
    return { trace: number('trace'), policy: number('policy'), event: number('event'), block: number('block') };
  }
}
