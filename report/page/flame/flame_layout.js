// Where the boxes of a flame graph are drawn, as rows or as rectangles in each other. What is asked for in the whole
// comes first, each box after the one that it stands below or in.

const ROWS = { leastWidth: 1 };
// Pixels of the name of a frame over those that it called, of the rim around them; the least side of a box that holds
// others, and of one that has a name over them; the least area that is drawn.
const RECTANGLES = { header: 16, rim: 2, leastSide: 6, leastHeaderSide: 44, leastArea: 9, height: 300 };

// What a node called and holds memory, the most first.
function holders({ tree, sums: { bytes } }, node) {
  return tree.children[node].filter((child) => bytes[child] > 0).sort((a, b) => bytes[b] - bytes[a] || a - b);
}

class FlameRows {
  constructor(graph) {
    this.graph = graph;
    this.found = [];
  }

  // What is zoomed to and its callers are as wide as the graph.
  boxes(width) {
    const { tree, zoomed } = this.graph;
    const path = [];
    for (let node = zoomed; node !== 0; node = tree.parent[node]) path.unshift(node);
    let box = this.graph.boxBelow(undefined, 0, { x: 0, y: 0, width, height: FLAME.row });
    for (const node of path) {
      this.found.push(box);
      box = this.below(box, node, 0, width);
    }
    this.place(box);
    return this.found;
  }

  below(box, node, x, width) {
    return this.graph.boxBelow(box, node, { x, y: box.y + FLAME.row, width, height: FLAME.row });
  }

  place(box) {
    const { bytes } = this.graph.sums;
    this.found.push(box);
    let { x } = box;
    for (const child of holders(this.graph, box.node)) {
      const width = bytes[child] / bytes[box.node] * box.width;
      if (width < ROWS.leastWidth) break;
      this.place(this.below(box, child, x, width));
      x += width;
    }
  }
}

// Rectangles near squares (Bruls, Huizing, van Wijk, Squarified treemaps, 2000). A frame that called one other alone
// is left out for that one. What was asked for in a frame itself is what is left of its own box.
class Treemap {
  constructor(graph) {
    this.graph = graph;
    this.found = [];
  }

  // The whole is a row above what is zoomed to.
  boxes(width) {
    const { zoomed } = this.graph;
    const height = Math.max(RECTANGLES.height, this.graph.box.clientHeight - 4);
    const whole = this.graph.boxBelow(undefined, 0, { x: 0, y: 0, width, height });
    if (zoomed === 0) {
      this.place(whole);
      return this.found;
    }
    this.found.push({ ...whole, height: FLAME.row });
    this.place(this.graph.boxBelow(this.found[0], zoomed, { x: 0, y: FLAME.row, width, height: height - FLAME.row }));
    return this.found;
  }

  place(box) {
    this.found.push(box);
    const hasHeader = Math.min(box.width, box.height) >= RECTANGLES.leastHeaderSide;
    const above = hasHeader ? RECTANGLES.header : RECTANGLES.rim;
    const left = { x: box.x + RECTANGLES.rim, y: box.y + above,
      width: box.width - 2 * RECTANGLES.rim, height: box.height - above - RECTANGLES.rim };
    if (Math.min(left.width, left.height) >= RECTANGLES.leastSide) this.fill(box, left);
  }

  fill(box, left) {
    const { bytes } = this.graph.sums;
    const children = holders(this.graph, box.node);
    let held = bytes[box.node];
    for (let first = 0; first < children.length;) {
      const side = Math.min(left.width, left.height);
      const scale = left.width * left.height / held; // pixels of area a byte
      const strip = this.strip(children, first, side, scale);
      const thickness = strip.bytes * scale / side;
      if (bytes[children[first]] * scale < RECTANGLES.leastArea) return;
      const isWide = left.width > left.height;
      let along = 0;
      for (; first < strip.end; first++) {
        const length = bytes[children[first]] * scale / thickness;
        const area = isWide ? { x: left.x, y: left.y + along, width: thickness, height: length }
          : { x: left.x + along, y: left.y, width: length, height: thickness };
        this.place(this.graph.boxBelow(box, this.joined(children[first]), area));
        along += length;
      }
      if (isWide) left = { ...left, x: left.x + thickness, width: left.width - thickness };
      else left = { ...left, y: left.y + thickness, height: left.height - thickness };
      held -= strip.bytes;
    }
  }

  // As many as stand beside each other along the shorter side before the worst of them gets longer.
  strip(children, first, side, scale) {
    const { bytes } = this.graph.sums;
    const worst = (sum, least, most) => Math.max(side * side * most / (sum * sum * scale), sum * sum * scale / (side * side * least));
    const most = bytes[children[first]];
    let [sum, end, ratio] = [most, first + 1, worst(most, most, most)];
    for (; end < children.length; end++) {
      const next = bytes[children[end]];
      const longer = worst(sum + next, next, most);
      if (longer > ratio) break;
      ratio = longer;
      sum += next;
    }
    return { bytes: sum, end };
  }

  joined(node) {
    const { bytes } = this.graph.sums;
    const children = holders(this.graph, node);
    return children.length === 1 && bytes[children[0]] === bytes[node] ? this.joined(children[0]) : node;
  }
}
