// Which colour a block has, by what the reader wants to tell apart.

// Told apart by people with every kind of colour vision as far as ten can be; the most important
// come first. Those of one place in both lists are one hue, for a light and a dark ground.
const LIGHT_COLOURS = ['#3b6fd4', '#e08214', '#2a9d8f', '#c8447c', '#7b5bc4', '#8ab017', '#c0392b', '#4fb3d9', '#9c6b3f', '#e3b505'];
const DARK_COLOURS = ['#6c9bff', '#f5a742', '#4cc9b4', '#ef77a8', '#a98bea', '#b4d64a', '#f0685a', '#7ed0f0', '#c99a6b', '#f3d14a'];
// From small or short to large or long.
const SCALE_COLOURS = ['#fde725', '#b5de2b', '#6ece58', '#35b779', '#1f9e89', '#26828e', '#31688e', '#3e4f99', '#553a94'];

function isDark() {
  return window.matchMedia('(prefers-color-scheme: dark)').matches;
}

function groupColours() {
  return isDark() ? DARK_COLOURS : LIGHT_COLOURS;
}

// The large and the long stand out from the ground.
function scaleColours() {
  return isDark() ? SCALE_COLOURS.slice().reverse() : SCALE_COLOURS;
}

// Numbers of a few things and how they are shown; the largest first, the rest in one grey.
class GroupColouring {
  constructor(names, weights, groupOf) {
    this.names = names;
    this.groupOf = groupOf;
    this.rank = new Map();
    const order = Array.from(names.keys()).sort((a, b) => weights[b] - weights[a] || a - b);
    order.slice(0, LIGHT_COLOURS.length).forEach((group, rank) => this.rank.set(group, rank));
    this.hasOthers = order.length > LIGHT_COLOURS.length;
  }

  ofGroup(group) {
    const rank = this.rank.get(group);
    return rank === undefined ? styleColour('other') : groupColours()[rank];
  }

  // Colours of all blocks at once: asking the style sheet for each would be slow.
  painter() {
    const colours = groupColours();
    const other = styleColour('other');
    return (block) => {
      const rank = this.rank.get(this.groupOf(block));
      return rank === undefined ? other : colours[rank];
    };
  }

  legend() {
    const entries = Array.from(this.rank, ([group, rank]) => [groupColours()[rank], this.names[group]]);
    return this.hasOthers ? [...entries, [styleColour('other'), 'others']] : entries;
  }
}

// A scale of powers of two (sizes) or ten (lifetimes) from `low` to `high`.
class ScaleColouring {
  constructor(base, low, high, valueOf, text) {
    this.base = base;
    this.low = low;
    this.high = Math.max(high, low + 1);
    this.valueOf = valueOf;
    this.text = text;
  }

  step(value) {
    const share = (Math.log(Math.max(value, 1)) / Math.log(this.base) - this.low) / (this.high - this.low);
    return Math.max(0, Math.min(SCALE_COLOURS.length - 1, Math.round(share * (SCALE_COLOURS.length - 1))));
  }

  painter() {
    const colours = scaleColours();
    return (block) => colours[this.step(this.valueOf(block))];
  }

  legend() {
    return scaleColours().map((colour, i) => {
      const power = this.low + (this.high - this.low) * i / (SCALE_COLOURS.length - 1);
      const isShown = i % 2 === 0;
      return [colour, isShown ? this.text(Math.round(this.base ** power)) : ''];
    });
  }
}

function sumBy(count, items, keyOf, weightOf) {
  const sums = new Float64Array(count);
  for (let i = 0; i < items; i++) sums[keyOf(i)] += weightOf(i);
  return sums;
}

function lifetimeText(events) {
  return `${countText(events)} events`;
}

function makeColouring(kind, run) {
  const trace = run.trace;
  const request = run.request;
  const weigh = (values, names) => sumBy(names.length, trace.requests, (i) => values[i], (i) => trace.bytes[i]);
  switch (kind) {
    case 'stream': {
      const names = trace.streams.map((name) => `stream ${name}`);
      return new GroupColouring(names, weigh(trace.stream, names), (block) => trace.stream[request[block]]);
    }
    case 'pool': {
      const names = trace.pools.map((name, i) => (i === 0 ? 'default pool' : `pool ${name}`));
      return new GroupColouring(names, weigh(trace.pool, names), (block) => trace.pool[request[block]]);
    }
    case 'size':
      return new ScaleColouring(2, 9, 30, (block) => run.bytes[block], stepText);
    case 'age':
      return new ScaleColouring(10, 0, Math.ceil(Math.log10(trace.events + 1)),
        (block) => Math.min(run.end[block], run.last + 1) - run.begin[block], lifetimeText);
    default:
      return new GroupColouring(trace.groups.names, trace.groups.peaks, (block) => trace.groups.of[request[block]]);
  }
}

function fillLegend(target, entries) {
  target.replaceChildren(...entries.map(([colour, text]) => {
    const entry = element('span', undefined, 'legend-entry');
    const swatch = element('i', undefined, 'swatch');
    swatch.style.background = colour;
    entry.append(swatch, text);
    return entry;
  }));
}
