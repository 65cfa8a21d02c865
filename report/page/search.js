// Searching requests: `train.py:42`, `size>100MiB forward`, `-linear`, `"two words"`. All words must be
// met. What was wrong with a word is said in a sentence.

const SEARCH_UNITS = { b: 1, kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30, tib: 2 ** 40, kb: 1e3, mb: 1e6, gb: 1e9, tb: 1e12 };
const SEARCH_NUMBERS = ['size', 'event', 'life'];
const SEARCH_TEXTS = ['file', 'func', 'stack', 'stream', 'pool'];

// Words, with quotes around blanks.
function wordsOf(text) {
  return Array.from(text.matchAll(/(?:[^\s"]|"[^"]*"?)+/g), (found) => found[0]);
}

function readAmount(text, isSize) {
  const found = /^(\d+(?:\.\d+)?)([a-z]*)$/i.exec(text.replace(/[,_]/g, ''));
  if (found === null) throw new Error(`'${text}' is no number; write 100${isSize ? 'MiB' : ''}`);
  if (found[2] === '') return Number(found[1]);
  const unit = isSize ? SEARCH_UNITS[found[2].toLowerCase()] : undefined;
  if (unit !== undefined) return Number(found[1]) * unit;
  throw new Error(isSize ? `'${text}' has an unknown unit; write KiB, MiB, GiB (1024s) or kB, MB, GB`
    : `'${text}' has a unit; events are plain numbers`);
}

const SEARCH_TESTS = {
  '>': (a, b) => a > b, '>=': (a, b) => a >= b, '<': (a, b) => a < b, '<=': (a, b) => a <= b, '=': (a, b) => a === b,
};

// One word: { isNot, key, test } for numbers, { isNot, key, text } for names.
function readWord(word) {
  const isNot = word.length > 1 && word.startsWith('-');
  const rest = isNot ? word.slice(1) : word;
  const number = /^(\w+)(>=|<=|>|<|=)(.*)$/.exec(rest);
  if (number !== null && SEARCH_NUMBERS.includes(number[1].toLowerCase())) {
    const key = number[1].toLowerCase();
    const amount = readAmount(number[3], key === 'size');
    return { isNot, key, test: (value) => SEARCH_TESTS[number[2]](value, amount) };
  }
  const named = /^(\w+):(.*)$/.exec(rest);
  const isNamed = named !== null && SEARCH_TEXTS.includes(named[1].toLowerCase());
  const text = (isNamed ? named[2] : rest).replace(/"/g, '').toLowerCase();
  if (text === '') throw new Error(`'${word}' searches for nothing; write a name behind it`);
  return { isNot, key: isNamed ? named[1].toLowerCase() : 'any', text };
}

function readQuery(text) {
  return wordsOf(text).map(readWord);
}

// `train.py:4` is line 4 of train.py, not line 42; text is free otherwise.
function frameMatcher(key, text) {
  const isLine = /\.\w+:\d+$/.test(text);
  return ([shown, path]) => {
    const [place, name] = splitFrame(shown);
    const whole = `${path.toLowerCase()}${place.slice(place.lastIndexOf(':'))}`;
    if (key === 'func') return name.includes(text);
    if (isLine) return whole === text || whole.endsWith(`/${text}`) || place === text;
    return key === 'file' ? whole.includes(text) : whole.includes(text) || shown.toLowerCase().includes(text);
  };
}

// "model.py:10 forward": the place and the function's name.
function splitFrame(shown) {
  const found = /^(.*?:\d+) (.*)$/.exec(shown.toLowerCase());
  return found === null ? [shown.toLowerCase(), ''] : [found[1], found[2]];
}

// The sites with a frame that is met, as one byte each.
function matchSites(trace, key, text) {
  const matches = frameMatcher(key, text);
  const frames = Uint8Array.from(trace.frames, (frame) => (matches(frame) ? 1 : 0));
  return Uint8Array.from(trace.sites, (site) => (site.some((frame, i) => i > 0 && frames[frame] === 1) ? 1 : 0));
}

// Whether a request meets a word.
function requestMatcher(trace, word) {
  const life = (request) => Math.min(trace.free[request], trace.last) - trace.begin[request];
  switch (word.key) {
    case 'size': return (request) => word.test(trace.bytes[request]);
    case 'event': return (request) => word.test(trace.begin[request]);
    case 'life': return (request) => word.test(life(request));
    case 'stream': return (request) => String(trace.streams[trace.stream[request]] || 0) === word.text;
    case 'pool': return (request) => (trace.pool[request] === 0 ? 'default' : trace.pools[trace.pool[request]]) === word.text;
    default: {
      const sites = matchSites(trace, word.key, word.text);
      return (request) => sites[trace.site[request]] === 1;
    }
  }
}

class Search {
  constructor(explorer) {
    this.explorer = explorer;
    this.text = '';
    this.box = explorer.byId('search');
    this.box.addEventListener('input', () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.run(), 150);
    });
    this.box.addEventListener('keydown', (event) => this.onKey(event));
    explorer.byId('search-next').addEventListener('click', () => this.step(1));
    explorer.byId('search-back').addEventListener('click', () => this.step(-1));
    explorer.byId('search-only').addEventListener('change', () => explorer.redraw());
  }

  onKey(event) {
    const acts = {
      Enter: () => {
        if (this.box.value !== this.text) this.run();
        this.step(event.shiftKey ? -1 : 1);
      },
      Escape: () => this.set(''),
    };
    onKeys(event, acts);
  }

  set(text) {
    this.box.value = text;
    this.run();
  }

  // Finds requests of the trace; the events of their allocs ascend.
  run() {
    clearTimeout(this.timer);
    this.text = this.box.value;
    let words = [];
    let problem = '';
    try {
      words = readQuery(this.text);
    } catch (wrong) {
      problem = wrong.message;
    }
    this.box.setAttribute('aria-invalid', String(problem !== ''));
    this.find(words);
    this.explorer.byId('search-count').textContent = problem !== '' ? problem : this.describe();
    for (const id of ['search-next', 'search-back', 'search-only'])
      this.explorer.byId(id).disabled = this.events === undefined || this.events.length === 0;
    this.explorer.relight();
  }

  find(words) {
    const { trace } = this.explorer;
    this.matched = undefined;
    this.events = undefined;
    if (words.length === 0) return;
    const tests = words.map((word) => [requestMatcher(trace, word), word.isNot]);
    this.matched = new Uint8Array(trace.requests);
    this.events = new Uint32Array(trace.requests);
    this.bytes = 0;
    let count = 0;
    for (let i = 0; i < trace.requests; i++) {
      if (!tests.every(([test, isNot]) => test(i) !== isNot)) continue;
      this.matched[i] = 1;
      this.bytes += trace.bytes[i];
      this.events[count++] = trace.begin[i];
    }
    this.events = this.events.slice(0, count);
  }

  describe() {
    if (this.events === undefined) return '';
    const count = this.events.length;
    if (count === 0) return 'no request is found';
    return `${countText(count)} ${count === 1 ? 'request' : 'requests'}, ${bytesText(this.bytes)} in all`;
  }

  // To the next (or last) request found; from the end it starts over.
  step(direction) {
    const { events } = this;
    if (events === undefined || events.length === 0) return;
    const below = firstAbove(events, this.explorer.event - (direction < 0 ? 1 : 0));
    const next = direction > 0 ? below % events.length : (below - 1 + events.length) % events.length;
    this.explorer.select(events[next]);
    this.explorer.byId('search-count').textContent = `${countText(next + 1)} of ${this.describe()}`;
  }
}
