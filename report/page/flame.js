// The flame graph of the selected event: what the program holds, by call stack. The whole is the first row;
// each box stands below the frame that called it and is as wide as the bytes asked for in it or in what it
// called. The widest come first. A press makes a box as wide as the graph.

const FLAME = { row: 20, least: 1, textLeast: 36, leastRows: 3, sameShare: 0.005 };

// Texts by number, the same in all trees.
const FRAME_NUMBERS = {
  known: new Map(),

  of(text) {
    if (!this.known.has(text)) this.known.set(text, this.known.size);
    return this.known.get(text);
  },
};

// Every call stack of a trace as paths of one tree, outermost frame first. Made once; parents come before
// their children.
class StackTree {
  constructor(trace) {
    this.trace = trace;
    this.frame = [-1]; // of each node; -1: the whole
    this.parent = [0];
    this.children = [[]];
    this.keys = []; // by frame, made when they are asked for
    this.nodeOf = new Uint32Array(trace.sites.length); // where the stack of a site ends
    const known = new Map();
    trace.sites.forEach((site, number) => {
      let node = 0;
      for (let i = site.length - 1; i > 0; i--) node = this.child(known, node, site[i]);
      this.nodeOf[number] = node;
    });
  }

  child(known, parent, frame) {
    const key = parent * this.trace.frames.length + frame;
    let node = known.get(key);
    if (node === undefined) {
      node = this.frame.length;
      known.set(key, node);
      this.frame.push(frame);
      this.parent.push(parent);
      this.children.push([]);
      this.children[parent].push(node);
    }
    return node;
  }

  name(node) {
    return node === 0 ? 'all that is held' : this.trace.frameText(this.frame[node]);
  }

  // Numbers by which frames of two recordings are told to be the same: `line`, in the same line, and `role`, the
  // same function of the same file, wherever its lines and its folder are.
  keysOf(node) {
    const frame = this.frame[node];
    if (this.keys[frame] === undefined) {
      const [place, ...name] = this.name(node).split(' ');
      const role = [place.replace(/:\d+$/, ''), ...name].join(' ');
      this.keys[frame] = { line: FRAME_NUMBERS.of(this.name(node)), role: FRAME_NUMBERS.of(role) };
    }
    return this.keys[frame];
  }

  // What these nodes call.
  called(nodes) {
    return nodes.length === 1 ? this.children[nodes[0]] : nodes.flatMap((node) => this.children[node]);
  }

  // "model.py:42": what a search for the requests of a frame asks for.
  place(node) {
    return this.trace.frames[this.frame[node]][0].split(' ', 1)[0];
  }
}

// Bytes and blocks of every node at a state; lit: bytes of the requests that stand out.
class FlameSums {
  constructor(tree, state, lit) {
    const { run, event } = state;
    const { site, bytes, free } = run.trace;
    this.bytes = new Float64Array(tree.frame.length);
    this.lit = new Float64Array(tree.frame.length);
    this.count = new Uint32Array(tree.frame.length);
    for (const block of state.blocks) {
      const request = run.request[block];
      if (free[request] <= event) continue; // waits for a stream: the program has given it back
      const node = tree.nodeOf[site[request]];
      this.bytes[node] += bytes[request];
      this.count[node]++;
      if (lit === undefined || lit[request] === 1) this.lit[node] += bytes[request];
    }
    for (let node = tree.frame.length - 1; node > 0; node--) {
      const parent = tree.parent[node];
      this.bytes[parent] += this.bytes[node];
      this.lit[parent] += this.lit[node];
      this.count[parent] += this.count[node];
    }
  }
}

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
    explorer.byId('pick-flame').addEventListener('change', () => this.explorer.redraw());
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
    this.layOut(Math.max(60, this.box.clientWidth));
    this.paint();
    this.tell();
  }

  // Boxes as { node, row, x, width, same, there }: what is zoomed to and its callers are as wide as the graph. same: the
  // nodes that cannot be told from it but by their lines; there: theirs in what is shown beside.
  layOut(width) {
    const { tree } = this;
    this.boxes = [];
    this.rowCount = 0;
    const path = [];
    for (let node = this.zoomed; node !== 0; node = tree.parent[node]) path.unshift(node);
    let box = { node: 0, row: 0, x: 0, width, same: [0], there: [0] };
    for (const node of path) {
      this.boxes.push(box);
      box = this.below(box, node, 0, width);
    }
    this.place(box);
  }

  below(box, node, x, width) {
    const pair = this.beside === undefined ? { same: [], there: [] } : this.pairOf(box, node);
    return { node, row: box.row + 1, x, width, ...pair };
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

  place(box) {
    const { bytes } = this.sums;
    const { node, x, width } = box;
    this.boxes.push(box);
    this.rowCount = Math.max(this.rowCount, box.row + 1);
    if (bytes[node] === 0) return;
    const children = this.tree.children[node].filter((child) => bytes[child] / bytes[node] * width >= FLAME.least);
    children.sort((a, b) => bytes[b] - bytes[a] || a - b);
    let left = x;
    for (const child of children) {
      const share = bytes[child] / bytes[node] * width;
      this.place(this.below(box, child, left, share));
      left += share;
    }
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
    const height = FLAME.row * Math.max(this.rowCount, FLAME.leastRows);
    const { context } = fitCanvas(this.canvas, height);
    context.font = '12px system-ui, sans-serif';
    context.textBaseline = 'middle';
    const colours = groupColours();
    for (const box of this.boxes) this.paintBox(context, box, colours);
    if (document.activeElement === this.canvas) this.outline(context);
  }

  paintBox(context, box, colours) {
    const { node, row, x, width } = box;
    const isLit = this.sums.lit[node] > 0 || this.explorer.lit === undefined;
    const inner = Math.max(0.5, width - 1);
    const [colour, alpha] = this.isByChange ? this.changeFill(box)
      : [node === 0 ? styleColour('other') : colours[this.fileOf(node) % colours.length], 0.5];
    context.globalAlpha = isLit ? alpha : 0.12;
    context.fillStyle = colour;
    context.fillRect(x, row * FLAME.row, inner, FLAME.row - 1);
    context.globalAlpha = isLit ? 1 : 0.5;
    if (width >= FLAME.textLeast) this.write(context, node, x, row, inner);
    context.globalAlpha = 1;
  }

  write(context, node, x, row, width) {
    context.save();
    context.beginPath();
    context.rect(x, row * FLAME.row, width - 3, FLAME.row);
    context.clip();
    context.fillStyle = styleColour('ink');
    context.fillText(`${this.tree.name(node)}  ${bytesText(this.sums.bytes[node])}`, x + 4, row * FLAME.row + FLAME.row / 2);
    context.restore();
  }

  outline(context) {
    const box = this.boxOf(this.focused);
    if (box === undefined) return;
    context.strokeStyle = styleColour('accent');
    context.lineWidth = 2;
    context.strokeRect(box.x + 1, box.row * FLAME.row + 1, Math.max(2, box.width - 3), FLAME.row - 3);
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

  find(event) {
    const at = this.canvas.getBoundingClientRect();
    const [x, row] = [event.clientX - at.left, Math.floor((event.clientY - at.top) / FLAME.row)];
    return this.boxes.find((box) => box.row === row && x >= box.x && x < box.x + box.width);
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
      ArrowUp: () => this.focus(this.tree.parent[this.focused]),
      ArrowDown: () => this.focus(this.neighbours(this.focused)[0]),
      ArrowLeft: () => this.focus(this.sibling(-1)),
      ArrowRight: () => this.focus(this.sibling(1)),
      Enter: () => this.zoom(this.focused),
      ' ': () => this.zoom(this.focused),
      Escape: () => this.zoom(0),
    };
    onKeys(event, acts);
  }

  // What a frame called, as far as it is drawn.
  neighbours(parent) {
    return this.boxes.filter((box) => box.node !== 0 && this.tree.parent[box.node] === parent).map((box) => box.node);
  }

  sibling(step) {
    const all = this.focused === 0 ? [] : this.neighbours(this.tree.parent[this.focused]);
    return all[all.indexOf(this.focused) + step];
  }

  focus(node) {
    if (node === undefined) return;
    this.focused = node;
    this.explorer.say(this.describe(node).join(', '));
    this.explorer.redraw();
  }
}
