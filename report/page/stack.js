// Blocks (or segments) over time, one on the other in the order of their birth, each as high as its
// bytes: every allocation is an area, as wide as it lived.
//
// A column of pixels shows the moment in it at which most was held. What would be too low to be seen, and
// what is beyond the largest few thousand, is summed up by colour above the others: so the picture
// takes time for its pixels and its large areas, not for every block times every pixel.

const STACK = { areasMax: 4000, leastPixels: 0.75, edgePixels: 4, markPixels: 2, dimShare: 0.16 };

class StackedAreas {
  // items: { begin, end, bytes, codes, isLit(item) }; levels: their sum at each event, as Extremes.
  constructor(items, levels) {
    this.items = items;
    this.levels = levels;
  }

  // edges: events of the columns (TimeAxis.columns); lowest: the bytes at the lower edge.
  layOut(edges, pixelsPerByte, lowest) {
    this.edges = edges;
    this.pixelsPerByte = pixelsPerByte;
    this.lowest = lowest;
    this.sampleColumns();
    this.choose();
    this.sumRest();
  }

  // The event that each column shows, and the column from which on an event is seen.
  sampleColumns() {
    const { edges } = this;
    const count = this.levels.values.length;
    const width = edges.length - 1;
    this.first = edges[0] > 0 ? edges[0] - 1 : 0;
    this.samples = new Uint32Array(width);
    this.columnCount = 0;
    for (let column = 0; column < width; column++) {
      const from = edges[column];
      const to = Math.min(edges[column + 1], count);
      if (from >= count) break; // the run has ended
      const before = column > 0 ? edges[column] - 1 : this.first;
      this.samples[column] = to > from ? this.levels.highestAt(from, to) : Math.min(before, count - 1);
      this.columnCount = column + 1;
    }
    this.last = this.columnCount > 0 ? this.samples[this.columnCount - 1] : 0;
    this.start = this.columnCount > 0 ? this.samples[0] : 0;
    this.columnOf = new Uint16Array(this.last - this.start + 1);
    for (let column = 1; column < this.columnCount; column++)
      this.columnOf.fill(column, this.samples[column - 1] + 1 - this.start, this.samples[column] + 1 - this.start);
  }

  columnFrom(event) {
    return event <= this.start ? 0 : this.columnOf[event - this.start];
  }

  // The areas that are drawn one by one: high enough, and among the largest on the screen.
  choose() {
    const { begin, end, bytes } = this.items;
    const first = this.start;
    const leastBytes = STACK.leastPixels / this.pixelsPerByte;
    const until = this.columnCount > 0 ? firstAbove(begin, this.last) : 0;
    const counts = new Uint32Array(1024); // of areas, by eighths of powers of two
    const weights = new Float32Array(until);
    for (let i = 0; i < until; i++) {
      if (end[i] <= first || bytes[i] < leastBytes) continue;
      weights[i] = bytes[i] * (Math.min(end[i], this.last + 1) - Math.max(begin[i], first) + 0.5);
      counts[Math.min(1023, Math.floor(Math.log2(weights[i]) * 8))]++;
    }
    let level = 1023;
    for (let sum = counts[level]; level > 0 && sum + counts[level - 1] <= STACK.areasMax; level--) sum += counts[level - 1];
    const least = 2 ** (level / 8);
    this.chosen = [];
    this.isChosen = new Uint8Array(until);
    for (let i = 0; i < until; i++) {
      if (weights[i] < least || weights[i] === 0) continue;
      this.chosen.push(i);
      this.isChosen[i] = 1;
    }
  }

  // Bytes of the others in each column, by colour and by whether they are lit.
  sumRest() {
    const { begin, end, bytes, codes, isLit } = this.items;
    const kinds = STACK_KINDS;
    this.rest = new Float64Array((this.columnCount + 1) * kinds);
    const first = this.start;
    for (let i = 0; i < this.isChosen.length; i++) {
      if (this.isChosen[i] === 1 || end[i] <= first || end[i] <= begin[i]) continue;
      const kind = codes[i] * 2 + (isLit(i) ? 0 : 1);
      const from = this.columnFrom(begin[i]);
      const to = end[i] > this.last ? this.columnCount : this.columnFrom(end[i]);
      if (to <= from) continue;
      this.rest[from * kinds + kind] += bytes[i];
      this.rest[to * kinds + kind] -= bytes[i];
    }
    for (let at = kinds; at < this.rest.length; at++) this.rest[at] += this.rest[at - kinds];
  }

  // Visits the columns from left to right with the chosen areas that live there, oldest first.
  eachColumn(visit, until = this.columnCount) {
    const { begin, end } = this.items;
    const { chosen } = this;
    const live = new Uint32Array(chosen.length);
    let count = 0;
    let next = 0;
    for (let column = 0; column < until; column++) {
      const event = this.samples[column];
      let kept = 0;
      for (let i = 0; i < count; i++) if (end[live[i]] > event) live[kept++] = live[i];
      for (; next < chosen.length && begin[chosen[next]] <= event; next++)
        if (end[chosen[next]] > event) live[kept++] = chosen[next];
      count = kept;
      visit(column, live, count);
    }
  }

  // Into a picture of width × height pixels. palette: stackPalette; neighbours of one colour are told
  // apart by two shades in turn.
  paint(pixels, width, height, palette, marked, markedPixel) {
    const { bytes, codes, isLit } = this.items;
    const { pixelsPerByte } = this;
    this.eachColumn((column, live, count) => {
      let sum = -this.lowest;
      let y = height;
      const put = (from, to, colour) => {
        for (let at = to - 1; at >= from; at--) pixels[at * width + column] = colour;
      };
      const fill = (amount, colour, edge) => {
        sum += amount;
        const top = Math.min(y, Math.max(0, Math.round(height - sum * pixelsPerByte)));
        put(top, y, colour);
        if (edge !== undefined && y - top >= STACK.edgePixels) put(top, top + 1, edge);
        y = top;
      };
      // What is pinned has a line around it.
      const mark = (bottom) => {
        put(y, Math.min(bottom, y + STACK.markPixels), markedPixel);
        put(Math.max(y, bottom - STACK.markPixels), bottom, markedPixel);
      };
      for (let i = 0; i < count; i++) {
        const item = live[i];
        const shades = palette[codes[item] * 2 + (isLit(item) ? 0 : 1)];
        const bottom = y;
        fill(bytes[item], shades[item & 1], shades[2]);
        if (item === marked) mark(bottom);
      }
      for (let kind = 0; kind < STACK_KINDS; kind++) {
        const amount = this.rest[column * STACK_KINDS + kind];
        if (amount > 0) fill(amount, palette[kind][0]);
      }
    });
  }

  // The item at a column and a height in bytes: a number, 'rest', or undefined above all.
  find(column, height) {
    let found;
    const { bytes } = this.items;
    this.eachColumn((at, live, count) => {
      if (at !== column) return;
      let sum = 0;
      for (let i = 0; i < count && found === undefined; i++) {
        sum += bytes[live[i]];
        if (height < sum) found = live[i];
      }
      for (let kind = 0; kind < STACK_KINDS; kind++) sum += this.rest[column * STACK_KINDS + kind];
      if (found === undefined && height < sum) found = 'rest';
    }, Math.min(column + 1, this.columnCount));
    return found;
  }
}

// Every code, lit and dim.
const STACK_KINDS = 2 * (LIGHT_COLOURS.length + 1);

// Pixels of a colouring: [even, odd, edge] for each kind.
function stackPalette(colouring) {
  const ground = styleColour('panel');
  const edge = styleColour('ground');
  return colouring.palette().flatMap((colour) => [1, STACK.dimShare].map((share) => [
    pixelOf(colour, ground, share), pixelOf(colour, ground, share * 0.86), pixelOf(colour, edge, share * 0.55)]));
}
