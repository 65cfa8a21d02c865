// What the reader presses, picks and types around the pictures.

class ExplorerControls {
  constructor(explorer) {
    this.explorer = explorer;
  }

  byId(id) {
    return this.explorer.byId(id);
  }

  listen() {
    const { explorer } = this;
    const open = (wanted) => explorer.open(wanted).catch(sayFailure);
    this.onPick('pick-trace', (value) => open({ trace: Number(value) }));
    this.onPick('pick-run', (value) => open({ trace: explorer.trace.number, policy: Number(value) }));
    this.onPick('pick-colour', (value) => explorer.setColour(value));
    this.onPick('pick-areas', (value) => {
      explorer.areas = value;
      explorer.forget();
    });
    this.onPick('pick-layout', (value) => {
      explorer.layout = value;
      explorer.redraw();
    });
    this.onPick('pick-axis', (value) => {
      explorer.axisKind = value;
      explorer.axis.reset();
      explorer.forget();
    });
    this.listenToSteps();
    explorer.resizes = new ResizeObserver(() => explorer.redraw());
    explorer.resizes.observe(this.byId('timeline-box'));
    if (explorer.suffix === '') this.listenToAddress(open);
  }

  onPick(id, act) {
    this.byId(id).addEventListener('change', (event) => act(event.target.value));
  }

  listenToAddress(open) {
    window.addEventListener('hashchange', () => open(this.explorer.wanted()));
    // The links of the result tables select a run; one wants to see it then.
    for (const link of document.querySelectorAll('th.policy a'))
      link.addEventListener('click', () => this.byId('explorer').scrollIntoView());
  }

  listenToSteps() {
    const { explorer } = this;
    const onPress = (id, act) => this.byId(id).addEventListener('click', act);
    onPress('to-start', () => explorer.select(explorer.trace.start));
    onPress('step-back', () => explorer.select(explorer.event - 1));
    onPress('step-on', () => explorer.select(explorer.event + 1));
    onPress('to-end', () => explorer.select(explorer.run.last));
    onPress('to-peak', () => explorer.select(explorer.run.peak_event));
    onPress('to-oom', () => explorer.select(explorer.run.oom.event));
    onPress('zoom-out', () => explorer.showAll());
    this.byId('event-slider').addEventListener('input', (event) => explorer.select(Number(event.target.value)));
    this.byId('event-number').addEventListener('change', (event) => explorer.select(Number(event.target.value)));
    this.byId('timeline').addEventListener('keydown', (event) => this.onKey(event));
  }

  onKey(event) {
    const { explorer } = this;
    const stride = event.shiftKey ? 100 : 1;
    const middle = TIMELINE.left + explorer.timeline.plotWidth / 2;
    onKeys(event, {
      ArrowLeft: () => explorer.select(explorer.event - stride),
      ArrowRight: () => explorer.select(explorer.event + stride),
      Home: () => explorer.select(explorer.trace.start),
      End: () => explorer.select(explorer.run.last),
      PageUp: () => explorer.select(this.markBeside(-1)),
      PageDown: () => explorer.select(this.markBeside(1)),
      Enter: () => explorer.list.pinLine(),
      Escape: () => explorer.pin(undefined),
      '+': () => explorer.axis.zoom(0.5, middle),
      '-': () => explorer.axis.zoom(2, middle),
    });
  }

  // The next mark in a direction, or the event itself.
  markBeside(direction) {
    const { explorer } = this;
    const events = explorer.trace.marks.map((mark) => mark[0]);
    const found = direction > 0 ? events.find((event) => event > explorer.event)
      : events.reverse().find((event) => event < explorer.event);
    return found === undefined ? explorer.event : found;
  }
}
