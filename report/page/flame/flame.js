// The flame graph of the selected event: what the program holds, by call stack. As rows, the whole is the first;
// each box stands below the frame that called it and is as wide as the bytes asked for in it or in what it called.
// As rectangles (a treemap), each box holds what it called, in areas in proportion to the bytes. A press makes a
// box as large as the graph.

const FLAME = { row: 20, leastRows: 3, textLeast: 36, textHeight: 14, sameShare: 0.005 };

class FlameGraph {
  constructor(explorer) {
    this.explorer = explorer;
    this.panel = explorer.byId('flame-panel');
    this.canvas = explorer.byId('flame');
    this.box = explorer.byId('flame-box');
    this.boxes = [];
    this.focused = 0;
    this.zoomed = 0;
    this.canvas.addEventListener('pointermove', (event) => this.onMove(event));
    this.canvas.addEventListener('pointerleave', hideTip);
    this.canvas.addEventListener('click', (event) => this.onClick(event));
    this.canvas.addEventListener('keydown', (event) => this.onKey(event));
    for (const name of ['focus', 'blur']) this.canvas.addEventListener(name, () => this.explorer.redraw());
    for (const name of ['pick-flame', 'pick-flame-shape'])
      explorer.byId(name).addEventListener('change', () => this.explorer.redraw());
    explorer.byId('flame-whole').addEventListener('click', () => this.zoom(0));
    explorer.byId('flame-find').addEventListener('click', () => this.search());
    // What nobody sees takes no time.
    this.watch = new IntersectionObserver((entries) => {
      this.isSeen = entries[entries.length - 1].isIntersecting;
      if (this.isSeen) this.explorer.redraw();
    });
    this.watch.observe(this.panel);
  }

  close() {
    this.watch.disconnect();
  }

  // ---- drawing

  draw(isForPaper) {
    const { trace, state } = this.explorer;
    setHidden(this.panel, !trace.hasStacks);
    if (!trace.hasStacks || (!this.isSeen && !isForPaper)) return;
    this.treeOf(trace);
    this.sums = new FlameSums(this.tree, state, this.explorer.lit);
    this.beside = this.findBeside();
    this.isTreemap = this.explorer.byId('pick-flame-shape').value === 'rectangles';
    this.boxes = (this.isTreemap ? new Treemap(this) : new FlameRows(this)).boxes(Math.max(60, this.box.clientWidth));
    this.paint();
    this.tell();
  }

  // A box to be drawn: where it is in pixels, what it stands below or in, and same: the nodes that cannot be told from
  // it but by their lines; there: theirs in what is shown beside.
  boxBelow(above, node, area) {
    let pair = { same: [0], there: [0] };
    if (node !== 0) {
      const parent = this.tree.parent[node];
      const below = parent === above.node ? above : this.boxBelow(above, parent, area);
      pair = this.beside === undefined ? { same: [], there: [] } : this.pairOf(below, node);
    }
    return { node, above, ...area, ...pair };
  }

  // What is called here and beside by a line of the same text; else by the same function, as far as lines of it
  // have no partner.
  pairOf(box, node) {
    const { tree } = this;
    const other = this.beside.tree;
    const [mine, theirs] = [tree.called(box.same), other.called(box.there)];
    const { line, role } = tree.keysOf(node);
    const there = theirs.filter((one) => other.keysOf(one).line === line);
    if (there.length > 0) return { same: mine.filter((one) => tree.keysOf(one).line === line), there };
    const lines = (nodes, of) => new Set(nodes.map((one) => of.keysOf(one).line));
    const [myLines, theirLines] = [lines(mine, tree), lines(theirs, other)];
    return { same: mine.filter((one) => tree.keysOf(one).role === role && !theirLines.has(tree.keysOf(one).line)),
      there: theirs.filter((one) => other.keysOf(one).role === role && !myLines.has(other.keysOf(one).line)) };
  }

  // ---- beside another recording, or another moment

  // The flame graph of the other explorer: { tree, sums }.
  findBeside() {
    const other = PAGE.explorers.find((one) => one !== this.explorer);
    const isThere = other !== undefined && other.event !== undefined && other.trace.hasStacks;
    setHidden(this.explorer.byId('flame-colours'), !isThere);
    if (!isThere) return undefined;
    const tree = other.flame.treeOf(other.trace);
    return { tree, sums: new FlameSums(tree, other.currentState(), undefined) };
  }

  treeOf(trace) {
    if (this.tree === undefined || this.tree.trace !== trace) {
      this.tree = new StackTree(trace);
      this.zoomed = 0;
      this.focused = 0;
    }
    return this.tree;
  }

  // How much more is held here than beside, in boxes that are alike: bytes.
  changeOf({ same, there }) {
    const sum = (nodes, { bytes }) => nodes.reduce((total, node) => total + bytes[node], 0);
    return { here: sum(same, this.sums), there: sum(there, this.beside.sums) };
  }

  get isByChange() {
    return this.beside !== undefined && this.explorer.byId('pick-flame').value === 'change';
  }

  // Red: more is held here, green: less, the stronger the larger the change is beside what there was; grey: as much.
  changeFill(box) {
    const { here, there } = this.changeOf(box);
    const share = (here - there) / Math.max(here, there, 1);
    if (Math.abs(share) < FLAME.sameShare) return [styleColour('other'), 0.4];
    return [styleColour(share > 0 ? 'bad' : 'good'), 0.2 + 0.6 * Math.abs(share)];
  }

  paint() {
    const lowest = this.boxes.reduce((most, { y, height }) => Math.max(most, y + height), 0);
    const { context } = fitCanvas(this.canvas, Math.max(lowest, FLAME.row * FLAME.leastRows));
    context.font = '12px system-ui, sans-serif';
    context.textBaseline = 'middle';
    const colours = groupColours();
    for (const box of this.boxes) this.paintBox(context, box, colours);
    if (document.activeElement === this.canvas) this.outline(context);
  }

  paintBox(context, box, colours) {
    const { node, x, y, width, height } = box;
    const isLit = this.sums.lit[node] > 0 || this.explorer.lit === undefined;
    const inner = { width: Math.max(0.5, width - 1), height: Math.max(0.5, height - 1) };
    const [colour, alpha] = this.isByChange ? this.changeFill(box)
      : [node === 0 ? styleColour('other') : colours[this.fileOf(node) % colours.length], 0.5];
    if (this.isTreemap) { // it may lie on the one that it stands in
      context.fillStyle = styleColour('panel');
      context.fillRect(x, y, width, height);
    }
    context.globalAlpha = isLit ? alpha : 0.12;
    context.fillStyle = colour;
    context.fillRect(x, y, inner.width, inner.height);
    context.globalAlpha = isLit ? 1 : 0.5;
    if (width >= FLAME.textLeast && height >= FLAME.textHeight) this.write(context, box);
    context.globalAlpha = 1;
  }

  write(context, { node, x, y, width, height }) {
    context.save();
    context.beginPath();
    context.rect(x, y, width - 4, height);
    context.clip();
    context.fillStyle = styleColour('ink');
    context.fillText(`${this.tree.name(node)}  ${bytesText(this.sums.bytes[node])}`, x + 4, y + Math.min(height, FLAME.row) / 2);
    context.restore();
  }

  outline(context) {
    const box = this.boxOf(this.focused);
    if (box === undefined) return;
    context.strokeStyle = styleColour('accent');
    context.lineWidth = 2;
    context.strokeRect(box.x + 1, box.y + 1, Math.max(2, box.width - 3), Math.max(2, box.height - 3));
  }

  // Frames of one file have one colour.
  fileOf(node) {
    const path = this.tree.trace.frames[this.tree.frame[node]][1];
    let sum = 0;
    for (let i = 0; i < path.length; i++) sum = (sum * 31 + path.charCodeAt(i)) % 65521;
    return sum;
  }

  tell() {
    const { explorer, tree, sums, zoomed } = this;
    setText(explorer.byId('flame-text'), this.describe(zoomed).join(' · '));
    setHidden(explorer.byId('flame-whole'), zoomed === 0);
    setHidden(explorer.byId('flame-find'), zoomed === 0);
    this.canvas.setAttribute('aria-label', `Flame graph at event ${explorer.state.event}: ${tree.name(zoomed)}, ` +
      `${bytesText(sums.bytes[zoomed])}. Arrow keys go to callers, to what is called and to neighbours, Enter widens a frame, ` +
      'Escape shows the whole');
  }

  describe(node) {
    const { tree, sums } = this;
    const path = node === 0 ? [] : [tree.trace.frames[tree.frame[node]][1]];
    return [tree.name(node), `${bytesText(sums.bytes[node])}, ${percentText(sums.bytes[node], sums.bytes[0])} of what is held`,
      `${countText(sums.count[node])} ${sums.count[node] === 1 ? 'block' : 'blocks'}`, ...path];
  }

  describeChange(box) {
    if (this.beside === undefined) return [];
    const { here, there } = this.changeOf(box);
    const sign = here > there ? '+' : here < there ? '−' : '±';
    return [`beside: ${bytesText(there)}, so here ${sign}${bytesText(Math.abs(here - there))} in this function`];
  }

  // ---- what is asked for

  zoom(node) {
    this.zoomed = node;
    this.focused = node;
    this.explorer.redraw();
  }

  search() {
    this.explorer.search.set(`"${this.tree.place(this.zoomed).replace(/"/g, '')}"`);
  }

  boxOf(node) {
    return this.boxes.find((box) => box.node === node);
  }

  // The innermost of the boxes under the pointer.
  find(event) {
    const at = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - at.left, event.clientY - at.top];
    return this.boxes.filter((box) => x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height).pop();
  }

  onMove(event) {
    const box = this.find(event);
    if (box === undefined) hideTip();
    else showTip([...this.describe(box.node), ...this.describeChange(box)], event.clientX, event.clientY);
  }

  onClick(event) {
    const box = this.find(event);
    if (box !== undefined) this.zoom(box.node);
  }

  onKey(event) {
    const acts = {
      ArrowUp: () => this.focus(this.caller()),
      ArrowDown: () => this.focus(this.neighbours(this.focused)[0]),
      ArrowLeft: () => this.focus(this.sibling(-1)),
      ArrowRight: () => this.focus(this.sibling(1)),
      Enter: () => this.zoom(this.focused),
      ' ': () => this.zoom(this.focused),
      Escape: () => this.zoom(0),
    };
    onKeys(event, acts);
  }

  caller() {
    const box = this.boxOf(this.focused);
    return box === undefined || box.above === undefined ? 0 : box.above.node;
  }

  // What a frame called, as far as it is drawn.
  neighbours(parent) {
    return this.boxes.filter(({ above }) => above !== undefined && above.node === parent).map(({ node }) => node);
  }

  sibling(step) {
    const all = this.focused === 0 ? [] : this.neighbours(this.caller());
    return all[all.indexOf(this.focused) + step];
  }

  focus(node) {
    if (node === undefined) return;
    this.focused = node;
    this.explorer.say(this.describe(node).join(', '));
    this.explorer.redraw();
  }
}
