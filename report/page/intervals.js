// What lives at an event, out of many things that each live from `begin` to `end`, without looking
// at all of them: the things alive are kept for every so many events, and what began since is
// looked through. `begin` ascends. A thing lives after event e when begin <= e < end.
//
// Things are answered in the order of their keys (addresses). Lists hold ranks in that order, so
// that putting them together is sorting of plain numbers.

class Intervals {
  constructor(begin, end, keys, eventCount) {
    this.begin = begin;
    this.end = end;
    this.byRank = sortedIndex(keys);
    this.rankOf = new Uint32Array(keys.length);
    for (let rank = 0; rank < keys.length; rank++) this.rankOf[this.byRank[rank]] = rank;
    // Lists take memory, things between two lists take time: a quarter of a list's length between two.
    this.spacing = Math.max(1024, Math.ceil(this.mostAlive(eventCount) / 4));
    this.lists = [new Uint32Array(0)];
    for (let event = this.spacing; event <= eventCount; event += this.spacing) this.lists.push(this.ranksAt(event));
  }

  mostAlive(eventCount) {
    const change = new Int32Array(eventCount + 2);
    for (let i = 0; i < this.begin.length; i++) {
      change[Math.min(this.begin[i], eventCount + 1)]++;
      change[Math.min(this.end[i], eventCount + 1)]--;
    }
    let alive = 0;
    let most = 0;
    for (let event = 0; event <= eventCount; event++) {
      alive += change[event];
      if (alive > most) most = alive;
    }
    return most;
  }

  // The number of things that have begun at the event.
  begunAt(event) {
    return firstAbove(this.begin, event);
  }

  // Of what lives at the event, the ranks in order: those of the list before that still live, and
  // those that began since.
  ranksAt(event) {
    const list = Math.min(Math.floor(event / this.spacing), this.lists.length - 1);
    const { end, byRank, rankOf } = this;
    const first = list === 0 ? 0 : this.begunAt(list * this.spacing);
    const until = this.begunAt(event);
    const born = new Uint32Array(until - first);
    let bornCount = 0;
    for (let thing = first; thing < until; thing++) if (end[thing] > event) born[bornCount++] = rankOf[thing];
    const younger = born.subarray(0, bornCount).sort();
    const older = this.lists[list];
    const merged = new Uint32Array(older.length + bornCount);
    let count = 0;
    let next = 0;
    for (const rank of older) {
      if (end[byRank[rank]] <= event) continue;
      while (next < bornCount && younger[next] < rank) merged[count++] = younger[next++];
      merged[count++] = rank;
    }
    while (next < bornCount) merged[count++] = younger[next++];
    return merged.slice(0, count);
  }

  at(event) {
    const things = this.ranksAt(event);
    for (let i = 0; i < things.length; i++) things[i] = this.byRank[things[i]];
    return things;
  }
}

// The number of values at or below one, in an ascending array.
function firstAbove(values, value) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The order of values below 2^53, equal ones as they stand: sixteen bits after sixteen, in linear time.
function sortedIndex(values) {
  let order = Uint32Array.from(values.keys());
  let most = 0;
  for (const value of values) if (value > most) most = value;
  for (let scale = 1; scale <= most; scale *= 65536) {
    const starts = new Uint32Array(65537);
    const digits = new Uint16Array(values.length);
    for (let i = 0; i < values.length; i++) {
      digits[i] = Math.floor(values[i] / scale) % 65536;
      starts[digits[i] + 1]++;
    }
    for (let i = 0; i < 65536; i++) starts[i + 1] += starts[i];
    const next = new Uint32Array(values.length);
    for (const i of order) next[starts[digits[i]]++] = i;
    order = next;
  }
  return order;
}

// The lowest and highest of a level between two events. Blocks of 16 values are summed up, blocks of 16
// such blocks, and so on: it takes time for the logarithm of the distance.
class Extremes {
  constructor(values) {
    this.values = values;
    this.lows = [values];
    this.highs = [values];
    while (this.lows[this.lows.length - 1].length > Extremes.BLOCK) this.sumUp();
    this.low = 0; // what between() has found
    this.high = 0;
  }

  sumUp() {
    const lows = this.lows[this.lows.length - 1];
    const highs = this.highs[this.highs.length - 1];
    const count = Math.ceil(lows.length / Extremes.BLOCK);
    const low = new Float64Array(count).fill(Infinity);
    const high = new Float64Array(count).fill(-Infinity);
    for (let i = 0; i < lows.length; i++) {
      const block = i >>> 4;
      if (lows[i] < low[block]) low[block] = lows[i];
      if (highs[i] > high[block]) high[block] = highs[i];
    }
    this.lows.push(low);
    this.highs.push(high);
  }

  // Of the values from `first` up to and without `end`, into low and high.
  between(first, end) {
    let low = Infinity;
    let high = -Infinity;
    for (let level = 0; first < end; level++) {
      const lows = this.lows[level];
      const highs = this.highs[level];
      const isTop = level + 1 === this.lows.length;
      for (; first < end && (isTop || first % 16 !== 0); first++) {
        if (lows[first] < low) low = lows[first];
        if (highs[first] > high) high = highs[first];
      }
      for (; first < end && end % 16 !== 0; end--) {
        if (lows[end - 1] < low) low = lows[end - 1];
        if (highs[end - 1] > high) high = highs[end - 1];
      }
      first >>>= 4;
      end >>>= 4;
    }
    this.low = low;
    this.high = high;
  }

  // Where the highest of them is first.
  highestAt(first, end) {
    let high = -Infinity;
    let at = first; // a block of level atLevel
    let atLevel = 0;
    let right = end; // the same of what was seen from the right, which is later
    let rightLevel = 0;
    let rightHigh = -Infinity;
    for (let level = 0; first < end; level++) {
      const highs = this.highs[level];
      const isTop = level + 1 === this.lows.length;
      for (; first < end && (isTop || first % 16 !== 0); first++)
        if (highs[first] > high) {
          high = highs[first];
          at = first;
          atLevel = level;
        }
      for (; first < end && end % 16 !== 0; end--)
        if (highs[end - 1] >= rightHigh) {
          rightHigh = highs[end - 1];
          right = end - 1;
          rightLevel = level;
        }
      first >>>= 4;
      end >>>= 4;
    }
    if (rightHigh > high) return this.firstIn(right, rightLevel, rightHigh);
    return this.firstIn(at, atLevel, high);
  }

  // The first value of a block that is as high as the block.
  firstIn(block, level, high) {
    for (; level > 0; level--) {
      block *= 16;
      while (this.highs[level - 1][block] !== high) block++;
    }
    return block;
  }
}
Extremes.BLOCK = 16;
