// The flame graph of the selected event: what the program holds, by call stack. The whole is the first row;
// each box stands below the frame that called it and is as wide as the bytes asked for in it or in what it
// called. The widest come first. A press makes a box as wide as the graph.

const FLAME = { row: 20, least: 1, textLeast: 36, leastRows: 3 };

// Every call stack of a trace as paths of one tree, outermost frame first. Made once; parents come before
// their children.
class StackTree {
  constructor(trace) {
    this.trace = trace;
    this.frame = [-1]; // of each node; -1: the whole
    this.parent = [0];
    this.children = [[]];
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
    if (this.tree === undefined || this.tree.trace !== trace) {
      this.tree = new StackTree(trace);
      this.zoomed = 0;
      this.focused = 0;
    }
    this.sums = new FlameSums(this.tree, state, this.explorer.lit);
    this.layOut(Math.max(60, this.box.clientWidth));
    this.paint();
    this.tell();
  }

  // Boxes as { node, row, x, width }: what is zoomed to and its callers are as wide as the graph.
  layOut(width) {
    const { tree } = this;
    this.boxes = [];
    this.rowCount = 0;
    const callers = [];
    for (let node = this.zoomed; node !== 0; node = tree.parent[node]) callers.unshift(tree.parent[node]);
    callers.forEach((node, row) => this.boxes.push({ node, row, x: 0, width }));
    this.place(this.zoomed, callers.length, 0, width);
  }

  place(node, row, x, width) {
    const { bytes } = this.sums;
    this.boxes.push({ node, row, x, width });
    this.rowCount = Math.max(this.rowCount, row + 1);
    if (bytes[node] === 0) return;
    const children = this.tree.children[node].filter((child) => bytes[child] / bytes[node] * width >= FLAME.least);
    children.sort((a, b) => bytes[b] - bytes[a] || a - b);
    let left = x;
    for (const child of children) {
      const share = bytes[child] / bytes[node] * width;
      this.place(child, row + 1, left, share);
      left += share;
    }
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

  paintBox(context, { node, row, x, width }, colours) {
    const isLit = this.sums.lit[node] > 0 || this.explorer.lit === undefined;
    const inner = Math.max(0.5, width - 1);
    context.globalAlpha = isLit ? 0.5 : 0.12;
    context.fillStyle = node === 0 ? styleColour('other') : colours[this.fileOf(node) % colours.length];
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
    else showTip(this.describe(box.node), event.clientX, event.clientY);
  }

  onClick(event) {
    const box = this.find(event);
    if (box !== undefined) this.zoom(box.node);
  }

  onKey(event) {
    const acts = {
      ArrowUp: () => this.focus(this.tree.parent[this.focused]),
      ArrowDown: () => this.focus(this.neighbours(this.focused)[0]),
      ArrowLeft: () => this.focus(this.beside(-1)),
      ArrowRight: () => this.focus(this.beside(1)),
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

  beside(step) {
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
