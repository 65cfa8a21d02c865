// What lives at an event, out of many things that each live from `begin` to `end`, without looking
// at all of them: the things alive are kept for every so many events, and what began since is
// looked through. `begin` ascends. A thing lives after event e when begin <= e < end.

class Intervals {
  constructor(begin, end, eventCount) {
    this.begin = begin;
    this.end = end;
    // As many events between two lists as things in a list: both cost the same then.
    this.spacing = Math.max(1024, this.mostAlive(eventCount));
    this.lists = [];
    let alive = [];
    let next = 0;
    for (let event = this.spacing; event <= eventCount; event += this.spacing) {
      for (; next < begin.length && begin[next] <= event; next++) alive.push(next);
      alive = alive.filter((thing) => end[thing] > event);
      this.lists.push(Uint32Array.from(alive));
    }
  }

  mostAlive(eventCount) {
    const change = new Int32Array(eventCount + 2);
    for (let i = 0; i < this.begin.length; i++) {
      change[this.begin[i]]++;
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
    let low = 0;
    let high = this.begin.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.begin[middle] <= event) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  at(event) {
    const list = Math.min(Math.floor(event / this.spacing), this.lists.length);
    const found = [];
    if (list > 0)
      for (const thing of this.lists[list - 1]) if (this.end[thing] > event) found.push(thing);
    const until = this.begunAt(event);
    for (let thing = list > 0 ? this.begunAt(list * this.spacing) : 0; thing < until; thing++)
      if (this.end[thing] > event) found.push(thing);
    return found;
  }
}

// The lowest and highest of a level between two events, in time that does not grow with their
// distance as long as that matters: blocks of 256 values are summed up.
class Extremes {
  constructor(values) {
    this.values = values;
    const count = Math.ceil(values.length / Extremes.BLOCK);
    this.low = new Float64Array(count).fill(Infinity);
    this.high = new Float64Array(count).fill(-Infinity);
    for (let i = 0; i < values.length; i++) {
      const block = Math.floor(i / Extremes.BLOCK);
      if (values[i] < this.low[block]) this.low[block] = values[i];
      if (values[i] > this.high[block]) this.high[block] = values[i];
    }
  }

  // Of the values from `first` up to and without `end`.
  between(first, end) {
    let low = Infinity;
    let high = -Infinity;
    for (let i = first; i < end;) {
      const isWhole = i % Extremes.BLOCK === 0 && i + Extremes.BLOCK <= end;
      const lowHere = isWhole ? this.low[i / Extremes.BLOCK] : this.values[i];
      const highHere = isWhole ? this.high[i / Extremes.BLOCK] : this.values[i];
      if (lowHere < low) low = lowHere;
      if (highHere > high) high = highHere;
      i += isWhole ? Extremes.BLOCK : 1;
    }
    return { low, high };
  }
}
Extremes.BLOCK = 256;
