// The part of the page that moves: which trace, run and event are shown, and what follows from it.
// The address of the page says what is selected: #trace=0&policy=1&event=1234.

class Explorer {
  constructor(data) {
    this.traces = data.traces.map((facts, i) => new Trace(i, facts));
    this.colour = 'site';
    this.layout = 'address';
    this.axis = 'event';
    this.timeline = new Timeline(this);
    this.map = new MemoryMap(this);
    this.listen();
  }

  // ---- what is selected

  // What is wanted last counts, even if something else was still being unpacked.
  async open(wanted) {
    this.wish = wanted;
    const drawn = this.traces.filter((trace) => trace.is_drawn && trace.runs.some((run) => run.is_drawn));
    const trace = drawn.includes(this.traces[wanted.trace]) ? this.traces[wanted.trace] : drawn[0];
    const runs = trace.runs.filter((run) => run.is_drawn);
    const run = runs.includes(trace.runs[wanted.policy]) ? trace.runs[wanted.policy] : runs[0];
    await trace.load();
    await run.load();
    if (this.wish !== wanted) return;
    run.prepare();
    const isOther = trace !== this.trace;
    this.trace = trace;
    this.run = run;
    if (isOther) this.startTrace();
    this.colouring = makeColouring(this.colour, run);
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
      if (trace === this.trace) this.redraw();
    }
    byId('explorer').dataset.loaded = trace.number;
  }

  // Of the trace, those whose lines can be drawn already.
  drawnRuns() {
    return this.trace.runs.filter((run) => run.isLoaded);
  }

  startTrace() {
    this.group = undefined;
    this.timeline.reset();
    byId('pick-axis').disabled = this.trace.times === undefined;
    const slider = byId('event-slider');
    slider.min = this.trace.start;
    slider.max = this.trace.last;
    byId('event-number').max = this.trace.last;
  }

  select(event) {
    this.event = Math.max(this.trace.start, Math.min(this.run.last, Math.round(event)));
    this.state = this.run.stateAt(this.event);
    this.timeline.show(this.event);
    this.tell();
    this.redraw();
  }

  highlight(group) {
    this.group = group;
    this.redraw();
  }

  // The first colour is that of requested bytes.
  runColour(run) {
    const colours = groupColours();
    return colours[1 + run.number % (colours.length - 1)];
  }

  // ---- what is shown

  // All drawing of one moment happens once.
  redraw() {
    if (this.isDrawing || this.state === undefined) return;
    this.isDrawing = true;
    requestAnimationFrame(() => {
      this.isDrawing = false;
      this.draw();
    });
  }

  draw() {
    this.timeline.draw();
    this.map.draw();
    fillState(this.state);
    fillSites(this);
    this.fillLegends();
    byId('event-number').value = this.event;
    byId('event-slider').value = this.event;
    byId('event-text').textContent = this.describe(this.event).join(' · ');
    byId('to-oom').hidden = this.run.oom === null;
    const canvas = byId('timeline');
    canvas.setAttribute('aria-valuemin', this.trace.start);
    canvas.setAttribute('aria-valuemax', this.run.last);
    canvas.setAttribute('aria-valuenow', this.event);
    canvas.setAttribute('aria-valuetext', this.describe(this.event).slice(0, 3).join(', '));
    byId('explorer').dataset.shown = `${this.trace.number} ${this.run.number} ${this.event}`;
  }

  fillLegends() {
    const runs = this.drawnRuns();
    fillLegend(byId('timeline-legend'), [
      ...runs.map((run) => [this.runColour(run), run === this.run ? `${run.label} (selected)` : run.label]),
      [styleColour('part-requested'), 'requested'],
    ]);
    fillLegend(byId('map-legend'), [...this.colouring.legend(), [styleColour('hole'), 'free'],
      ...(this.state.waitingCount > 0 ? [[styleColour('part-waiting'), 'waiting']] : []),
      ...(this.layout === 'address' ? [[styleColour('unheld'), 'not held']] : [])]);
  }

  describe(event) {
    const { trace, run } = this;
    const lines = [`event ${countText(event)}`];
    if (trace.times !== undefined) lines.push(timeText(trace.times[event]));
    lines.push(this.describeAction(event));
    if (event > run.last) return [...lines, `${run.label} has stopped before`];
    return [...lines, `requested ${bytesText(run.requested[event])}`,
      ...this.drawnRuns().filter((one) => event <= one.last)
        .map((one) => `reserved ${bytesText(one.reserved[event])} (${one.label})`)];
  }

  describeAction(event) {
    const { trace } = this;
    const mark = trace.markAt.get(event);
    const asked = trace.requestAt[event];
    const freed = trace.freedAt[event];
    if (asked !== NEVER) {
      const isOom = this.run.oom !== null && this.run.oom.event === event;
      return `${isOom ? 'OUT OF MEMORY: ' : ''}alloc ${bytesText(trace.bytes[asked])}, ${this.nameOf(asked)}`;
    }
    if (freed !== NEVER) return `free ${bytesText(trace.bytes[freed])}, ${this.nameOf(freed)}`;
    if (mark === undefined) return 'wait, stream or observed event';
    return mark[2] === null ? mark[1] : `${mark[1]} ${mark[2]}`;
  }

  nameOf(request) {
    const { groups } = this.trace;
    return groups.isBySite ? groups.names[groups.of[request]] : `stream ${this.trace.streams[this.trace.stream[request]] || 0}`;
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
    fill(byId('pick-trace'), this.traces.filter((trace) => trace.is_drawn).map((trace) => [trace.number, trace.name]),
      this.trace.number);
    fill(byId('pick-run'), this.trace.runs.filter((run) => run.is_drawn).map((run) => [run.number, run.label]),
      this.run.number);
  }

  // ---- the address of the page

  tell() {
    const hash = `#trace=${this.trace.number}&policy=${this.run.number}&event=${this.event}`;
    if (hash === location.hash) return;
    try {
      history.replaceState(null, '', hash);
    } catch (refused) {
      // Some browsers limit how often an address may change; it is only a convenience.
    }
  }

  wanted() {
    const words = new URLSearchParams(location.hash.slice(1));
    const number = (name) => (words.has(name) ? Number(words.get(name)) : NaN);
    return { trace: number('trace'), policy: number('policy'), event: number('event') };
  }

  // ---- pointer and keys

  listen() {
    const onPick = (id, act) => byId(id).addEventListener('change', (event) => act(event.target.value));
    const open = (wanted) => this.open(wanted).catch(sayFailure);
    onPick('pick-trace', (value) => open({ trace: Number(value) }));
    onPick('pick-run', (value) => open({ trace: this.trace.number, policy: Number(value) }));
    onPick('pick-colour', (value) => {
      this.colour = value;
      this.colouring = makeColouring(value, this.run);
      this.redraw();
    });
    onPick('pick-layout', (value) => {
      this.layout = value;
      this.redraw();
    });
    onPick('pick-axis', (value) => {
      this.axis = value;
      this.timeline.reset();
      this.redraw();
    });
    this.listenToSteps();
    window.addEventListener('hashchange', () => open(this.wanted()));
    // The links of the result tables select a run; one wants to see it then.
    for (const link of document.querySelectorAll('th.policy a'))
      link.addEventListener('click', () => byId('explorer').scrollIntoView());
    new ResizeObserver(() => this.redraw()).observe(byId('timeline-box'));
    window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.redraw());
  }

  listenToSteps() {
    const onPress = (id, act) => byId(id).addEventListener('click', act);
    onPress('to-start', () => this.select(this.trace.start));
    onPress('step-back', () => this.select(this.event - 1));
    onPress('step-on', () => this.select(this.event + 1));
    onPress('to-end', () => this.select(this.run.last));
    onPress('to-peak', () => this.select(this.run.peak_event));
    onPress('to-oom', () => this.select(this.run.oom.event));
    onPress('zoom-out', () => {
      this.timeline.reset();
      this.redraw();
    });
    byId('event-slider').addEventListener('input', (event) => this.select(Number(event.target.value)));
    byId('event-number').addEventListener('change', (event) => this.select(Number(event.target.value)));
    byId('timeline').addEventListener('keydown', (event) => this.onKey(event));
  }

  onKey(event) {
    const stride = event.shiftKey ? 100 : 1;
    const middle = TIMELINE.left + this.timeline.plotWidth / 2;
    const acts = {
      ArrowLeft: () => this.select(this.event - stride),
      ArrowRight: () => this.select(this.event + stride),
      Home: () => this.select(this.trace.start),
      End: () => this.select(this.run.last),
      PageUp: () => this.select(this.markBeside(-1)),
      PageDown: () => this.select(this.markBeside(1)),
      '+': () => this.timeline.zoom(0.5, middle),
      '-': () => this.timeline.zoom(2, middle),
    };
    if (acts[event.key] === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    acts[event.key]();
  }

  // The next mark in a direction, or the event itself.
  markBeside(direction) {
    const events = this.trace.marks.map((mark) => mark[0]);
    const found = direction > 0 ? events.find((event) => event > this.event)
      : events.reverse().find((event) => event < this.event);
    return found === undefined ? this.event : found;
  }
}

function sayProblem(text) {
  byId('problem').textContent = text;
  byId('problem').hidden = false;
}

async function start() {
  document.querySelectorAll('table.sortable').forEach(makeSortable);
  const data = JSON.parse(byId('data').textContent);
  if (!data.traces.some((trace) => trace.is_drawn && trace.runs.some((run) => run.is_drawn))) return;
  if (typeof DecompressionStream === 'undefined') {
    sayProblem('This browser cannot unpack the data of the timeline and the memory map (it has no DecompressionStream); ' +
      'Chromium 80, Firefox 113 and Safari 16.4 and what came after can. The tables below are complete.');
    return;
  }
  byId('explorer').hidden = false;
  const explorer = new Explorer(data);
  await explorer.open(explorer.wanted());
}

function sayFailure(problem) {
  sayProblem(`The timeline and the memory map cannot be shown: ${problem.message}. The tables below are complete.`);
  throw problem;
}

start().catch(sayFailure);
