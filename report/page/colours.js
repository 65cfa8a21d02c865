// Which colour a block or a segment has, by what the reader wants to tell apart.

// Told apart by people with every kind of colour vision as far as ten can be; the most important
// come first. Those of one place in both lists are one hue, for a light and a dark ground.
const LIGHT_COLOURS = ['#3b6fd4', '#e08214', '#2a9d8f', '#c8447c', '#7b5bc4', '#8ab017', '#c0392b', '#4fb3d9', '#9c6b3f', '#e3b505'];
const DARK_COLOURS = ['#6c9bff', '#f5a742', '#4cc9b4', '#ef77a8', '#a98bea', '#b4d64a', '#f0685a', '#7ed0f0', '#c99a6b', '#f3d14a'];
// From small or short to large or long.
const SCALE_COLOURS = ['#fde725', '#b5de2b', '#6ece58', '#35b779', '#1f9e89', '#26828e', '#31688e', '#3e4f99', '#553a94'];

function groupColours() {
  return isDark() ? DARK_COLOURS : LIGHT_COLOURS;
}

// The large and the long stand out from the ground.
function scaleColours() {
  return isDark() ? SCALE_COLOURS.slice().reverse() : SCALE_COLOURS;
}

// Numbers of a few things; the largest have a colour each, the rest one grey. A code is the place of
// a colour in the palette: codes are computed once, so that drawing needs no look-up by name.
class GroupColouring {
  constructor(names, weights) {
    this.names = names;
    this.codeOf = new Uint8Array(names.length).fill(LIGHT_COLOURS.length);
    const order = Array.from(names.keys()).sort((a, b) => weights[b] - weights[a] || a - b);
    this.shown = order.slice(0, LIGHT_COLOURS.length);
    this.shown.forEach((group, code) => {
      this.codeOf[group] = code;
    });
    this.hasOthers = order.length > LIGHT_COLOURS.length;
  }

  palette() {
    return [...groupColours(), styleColour('other')];
  }

  ofGroup(group) {
    return this.palette()[this.codeOf[group]];
  }

  legend() {
    const palette = this.palette();
    const entries = this.shown.map((group, code) => [palette[code], this.names[group]]);
    return this.hasOthers ? [...entries, [styleColour('other'), 'others']] : entries;
  }
}

// A scale of powers of two (sizes) or ten (lifetimes) from `low` to `high`.
class ScaleColouring {
  constructor(base, low, high, text) {
    this.base = base;
    this.low = low;
    this.high = Math.max(high, low + 1);
    this.text = text;
  }

  step(value) {
    const share = (Math.log(Math.max(value, 1)) / Math.log(this.base) - this.low) / (this.high - this.low);
    return Math.max(0, Math.min(SCALE_COLOURS.length - 1, Math.round(share * (SCALE_COLOURS.length - 1))));
  }

  palette() {
    return scaleColours();
  }

  legend() {
    return scaleColours().map((colour, i) => {
      const power = this.low + (this.high - this.low) * i / (SCALE_COLOURS.length - 1);
      return [colour, i % 2 === 0 ? this.text(Math.round(this.base ** power)) : ''];
    });
  }
}

function sumBy(count, keys, weights) {
  const sums = new Float64Array(count);
  for (let i = 0; i < keys.length; i++) sums[keys[i]] += weights[i];
  return sums;
}

function lifetimeText(events) {
  return `${countText(events)} events`;
}

// Adds the codes of a run's blocks and segments, each by the request that it is for.
function codeByRequest(colouring, run, groupOf) {
  const { requestAt } = run.trace;
  const other = LIGHT_COLOURS.length;
  colouring.blockCodes = Uint8Array.from(run.request, (request) => colouring.codeOf[groupOf[request]]);
  // A segment is there for the request in whose event it was taken.
  colouring.segmentCodes = Uint8Array.from(run.segmentBegin, (event) =>
    (requestAt[event] === NEVER ? other : colouring.codeOf[groupOf[requestAt[event]]]));
  return colouring;
}

function codeByGroups(run, groups) {
  return codeByRequest(new GroupColouring(groups.names, groups.peaks), run, groups.of);
}

// Streams and pools: segments have their own.
function codeByPlace(run, names, ofRequest, ofSegment) {
  const { trace } = run;
  const colouring = codeByRequest(new GroupColouring(names, sumBy(names.length, ofRequest, trace.bytes)), run, ofRequest);
  colouring.segmentCodes = Uint8Array.from(ofSegment, (place) => colouring.codeOf[place]);
  return colouring;
}

function codeByScale(colouring, run, valueOf) {
  const { last } = run;
  const codes = (begin, end, bytes) =>
    Uint8Array.from(begin, (from, i) => colouring.step(valueOf(Math.min(end[i], last + 1) - from, bytes[i])));
  colouring.blockCodes = codes(run.begin, run.end, run.bytes);
  colouring.segmentCodes = codes(run.segmentBegin, run.segmentEnd, run.segmentBytes);
  return colouring;
}

function makeColouring(kind, run) {
  const { trace } = run;
  switch (kind) {
    case 'stream':
      return codeByPlace(run, trace.streams.map((name) => `stream ${name}`), trace.stream, run.segmentStream);
    case 'pool':
      return codeByPlace(run, trace.pools.map((name, i) => (i === 0 ? 'default pool' : `pool ${name}`)), trace.pool,
        run.segmentPool);
    case 'size':
      return codeByScale(new ScaleColouring(2, 9, 30, stepText), run, (life, bytes) => bytes);
    case 'age':
      return codeByScale(new ScaleColouring(10, 0, Math.ceil(Math.log10(trace.events + 1)), lifetimeText), run,
        (life) => life);
    default:
      return codeByGroups(run, trace.groupsBy(kind));
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
