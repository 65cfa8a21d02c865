// Blocks (or segments) over time, one on the other in the order of their birth, each as high as its
// bytes: every allocation is an area, as wide as it lived.
//
// A column of pixels shows the moment in it at which most was held. What would be too low to be seen, and
// what is beyond the largest few thousand, is summed up by colour above the others: so the picture
// takes time for its pixels and its large areas, not for every block. The largest are kept for stretches
// of the run, the sums by colour for every so many events.

const STACK = { areasMax: 4000, leastPixels: 0.75, edgePixels: 4, markPixels: 2, dimShare: 0.16,
  bornMax: 50000, tileEvents: 65536, tileItems: 8000, sumEvents: 64 };

// Those of some items whose weight is among the largest `most`, ascending.
function largestOf(items, weights, most) {
  const counts = new Uint32Array(1024); // by eighths of powers of two
  for (let i = 0; i < items.length; i++)
    if (weights[i] > 0) counts[Math.min(1023, Math.floor(Math.log2(weights[i]) * 8))]++;
  let level = 1023;
  for (let sum = counts[level]; level > 0 && sum + counts[level - 1] <= most; level--) sum += counts[level - 1];
  const least = 2 ** (level / 8);
  return items.filter((item, i) => weights[i] >= least && weights[i] > 0);
}

// Two ascending lists as one.
function mergeItems(one, other) {
  const merged = new Uint32Array(one.length + other.length);
  let count = 0;
  for (let i = 0, k = 0; i < one.length || k < other.length;) {
    const left = i < one.length ? one[i] : Infinity;
    const right = k < other.length ? other[k] : Infinity;
    merged[count++] = Math.min(left, right);
    if (left <= right) i++;
    if (right <= left) k++;
  }
  return merged.slice(0, count);
}

// Which items may be seen in a part of the run, whatever their colours.
class StackIndex {
  constructor({ begin, end, bytes, alive }) {
    Object.assign(this, { begin, end, bytes, alive });
    // In order of their ends, those that are seen at all.
    this.byEnd = sortedIndex(end).filter((item) => end[item] > begin[item] && end[item] !== NEVER);
    this.ends = new Uint32Array(this.byEnd.length);
    this.endBytes = new Float64Array(this.byEnd.length);
    for (let i = 0; i < this.byEnd.length; i++) {
      this.ends[i] = end[this.byEnd[i]];
      this.endBytes[i] = bytes[this.byEnd[i]];
    }
    this.tiles = []; // by level: the largest items in each 2^level * tileEvents events
  }

  // Items alive at `first`, and those born up to `last`: all of them.
  itemsBetween(first, last) {
    const older = this.alive.at(first).sort();
    const bornFrom = firstAbove(this.begin, first);
    const items = new Uint32Array(older.length + firstAbove(this.begin, last) - bornFrom);
    items.set(older);
    for (let i = older.length; i < items.length; i++) items[i] = bornFrom + i - older.length;
    return items;
  }

  // Bytes and events of each item between two events.
  weigh(items, first, last, leastBytes = 0) {
    const { begin, end, bytes } = this;
    const weights = new Float64Array(items.length);
    for (let i = 0; i < items.length; i++) {
      const item = items[i];
      if (end[item] <= first || begin[item] > last || bytes[item] < leastBytes) continue;
      weights[i] = bytes[item] * (Math.min(end[item], last + 1) - Math.max(begin[item], first) + 0.5);
    }
    return weights;
  }

  // The largest items of a stretch: of two shorter ones those of either.
  tile(level, number) {
    this.tiles[level] = this.tiles[level] || [];
    const known = this.tiles[level][number];
    if (known !== undefined) return known;
    const size = STACK.tileEvents * 2 ** level;
    const [first, last] = [number * size, (number + 1) * size - 1];
    const items = level === 0 ? this.itemsBetween(first, last)
      : mergeItems(this.tile(level - 1, 2 * number), this.tile(level - 1, 2 * number + 1));
    this.tiles[level][number] = largestOf(items, this.weigh(items, first, last), STACK.tileItems);
    return this.tiles[level][number];
  }

  // Where fewer are born than can be looked at, all; else those that are large in a stretch of the part.
  candidates(first, last) {
    if (firstAbove(this.begin, last) - firstAbove(this.begin, first) <= STACK.bornMax) return this.itemsBetween(first, last);
    const level = Math.max(0, Math.floor(Math.log2((last - first + 1) / STACK.tileEvents)));
    const size = STACK.tileEvents * 2 ** level;
    let items = new Uint32Array(0);
    for (let number = Math.floor(first / size); number * size <= last; number++) items = mergeItems(items, this.tile(level, number));
    return items;
  }
}

class StackedAreas {
  // items: { begin, end, bytes, codes, and for some to be lit: request, lit of each request }; levels: their sum at each event, as Extremes; index: of the items.
  constructor(items, levels, index) {
    this.items = items;
    this.levels = levels;
    this.index = index;
    this.makeKinds(items);
    this.keepSums();
  }

  // The colour of each, and whether it is dimmed.
  makeKinds({ codes, request, lit }) {
    this.kinds = new Uint8Array(codes.length);
    for (let i = 0; i < codes.length; i++) this.kinds[i] = codes[i] * 2 + (lit === undefined || lit[request[i]] === 1 ? 0 : 1);
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

  // ---- bytes by kind, of all items

  // Of every so many events; what comes between is added where it is asked for.
  keepSums() {
    const { byEnd } = this.index;
    this.endKinds = new Uint8Array(byEnd.length);
    for (let i = 0; i < byEnd.length; i++) this.endKinds[i] = this.kinds[byEnd[i]];
    const count = Math.floor(this.levels.values.length / STACK.sumEvents) + 1;
    this.sums = new Float64Array(STACK_KINDS * count);
    this.bornAt = new Uint32Array(count);
    this.endedAt = new Uint32Array(count);
    this.sum = { bytes: new Float64Array(STACK_KINDS), born: 0, ended: 0 };
    for (let kept = 0; kept < count; kept++) {
      this.addUntil(kept * STACK.sumEvents);
      this.sums.set(this.sum.bytes, kept * STACK_KINDS);
      this.bornAt[kept] = this.sum.born;
      this.endedAt[kept] = this.sum.ended;
    }
  }

  // To right after an event that is so many times sumEvents.
  startSum(kept) {
    const { bytes } = this.sum;
    for (let kind = 0; kind < STACK_KINDS; kind++) bytes[kind] = this.sums[kept * STACK_KINDS + kind];
    this.sum.born = this.bornAt[kept];
    this.sum.ended = this.endedAt[kept];
  }

  // On to right after an event.
  addUntil(event) {
    const { sum, kinds, endKinds } = this;
    const { begin, end, bytes } = this.items;
    const { ends, endBytes } = this.index;
    const sums = sum.bytes;
    let { born, ended } = sum;
    for (; born < begin.length && begin[born] <= event; born++)
      if (end[born] > begin[born]) sums[kinds[born]] += bytes[born];
    for (; ended < ends.length && ends[ended] <= event; ended++) sums[endKinds[ended]] -= endBytes[ended];
    sum.born = born;
    sum.ended = ended;
  }

  // ---- columns

  // The event that each column shows.
  sampleColumns() {
    const { edges } = this;
    const count = this.levels.values.length;
    const width = edges.length - 1;
    this.first = edges[0] > 0 ? edges[0] - 1 : 0;
    if (this.samples === undefined || this.samples.length !== width) this.samples = new Uint32Array(width);
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
  }

  // The column from which on an event is seen.
  columnFrom(event) {
    let low = 0;
    let high = this.columnCount - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.samples[middle] < event) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // The areas that are drawn one by one: high enough, and among the largest on the screen.
  choose() {
    const items = this.columnCount > 0 ? this.index.candidates(this.start, this.last) : new Uint32Array(0);
    const weights = this.index.weigh(items, this.start, this.last, STACK.leastPixels / this.pixelsPerByte);
    this.chosen = largestOf(items, weights, STACK.areasMax);
  }

  // Bytes of the others in each column, by kind: of all, without the chosen ones.
  sumRest() {
    const { begin, end, bytes } = this.items;
    const { kinds, samples } = this;
    const size = (this.columnCount + 1) * STACK_KINDS;
    if (this.rest === undefined || this.rest.length !== size) this.rest = new Float64Array(size);
    const { rest } = this;
    rest.fill(0);
    for (const item of this.chosen) {
      const from = this.columnFrom(begin[item]);
      const to = end[item] > this.last ? this.columnCount : this.columnFrom(end[item]);
      if (to <= from) continue;
      rest[from * STACK_KINDS + kinds[item]] -= bytes[item];
      rest[to * STACK_KINDS + kinds[item]] += bytes[item];
    }
    for (let at = STACK_KINDS; at < rest.length; at++) rest[at] += rest[at - STACK_KINDS];
    for (let column = 0; column < this.columnCount; column++) {
      const kept = Math.floor(samples[column] / STACK.sumEvents);
      if (column === 0 || kept * STACK.sumEvents > samples[column - 1]) this.startSum(kept);
      this.addUntil(samples[column]);
      for (let kind = 0; kind < STACK_KINDS; kind++) rest[column * STACK_KINDS + kind] += this.sum.bytes[kind];
    }
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
    const { bytes } = this.items;
    const { kinds, pixelsPerByte } = this;
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
        const shades = palette[kinds[item]];
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
