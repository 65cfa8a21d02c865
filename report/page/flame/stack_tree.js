// Call stacks as a tree, and what a program holds in each part of it: what flame.js draws.

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
  // same function of the same file, wherever its lines and its folder are. The script that was started is the same
  // file under any name.
  keysOf(node) {
    const frame = this.frame[node];
    if (this.keys[frame] === undefined) {
      const [place, ...name] = this.name(node).split(' ');
      const [, file, line = ''] = /^(.*?)(:\d+)?$/.exec(place);
      const role = [file === this.script() ? '' : file, ...name].join(' ');
      this.keys[frame] = { line: FRAME_NUMBERS.of(`${role}${line}`), role: FRAME_NUMBERS.of(role) };
    }
    return this.keys[frame];
  }

  // "train.py", the file of the outermost frame that is a script's; null: there is none.
  script() {
    if (this.scriptFile === undefined) {
      const outermost = this.children[0].map((node) => this.name(node)).find((name) => name.endsWith(' <module>'));
      this.scriptFile = outermost === undefined ? null : outermost.split(' ')[0].replace(/:\d+$/, '');
    }
    return this.scriptFile;
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
