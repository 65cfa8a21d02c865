// The tables beside the map: figures of the state, and who holds the memory. Rows are made once and
// filled anew at each step, where their text is another.

const PART_NAMES = {
  requested: 'requested', rounding: 'rounding', unsplit: 'unsplit', holes: 'holes in segments in use',
  cached: 'cached segments', waiting: 'waiting for a stream',
};
const SITES_SHOWN = 60;

// ---- figures of the state

class StatePanel {
  constructor(explorer) {
    this.explorer = explorer;
    this.body = explorer.byId('state-table').tBodies[0];
    this.rows = new Map();
  }

  draw() {
    const { state } = this.explorer;
    this.drawParts(state);
    this.shown = [];
    this.figure('reserved', 'reserved', state.reserved, bytesText(state.reserved));
    for (const [name, bytes] of Object.entries(state.parts))
      if (bytes > 0 || name === 'holes') this.bytes(name, PART_NAMES[name], bytes, name);
    this.bytes('allocated', 'allocated (blocks in use)', state.allocated);
    this.bytes('free', 'free inside segments', state.free);
    this.figure('largest-hole', 'largest hole', state.largestHole,
      `${bytesText(state.largestHole)} · ${percentText(state.largestHole, state.free)} of free`);
    this.count('hole-count', 'holes', state.holeCount);
    this.count('segment-count', 'segments', state.segments.length);
    this.count('block-count', 'blocks', state.blocks.length);
    const isSame = this.shown.length === this.body.rows.length && this.shown.every((row, i) => this.body.rows[i] === row);
    if (!isSame) this.body.replaceChildren(...this.shown);
  }

  bytes(key, name, bytes, swatch) {
    this.figure(key, name, bytes, `${bytesText(bytes)} · ${percentText(bytes, this.explorer.state.reserved)}`, swatch);
  }

  count(key, name, count) {
    this.figure(key, name, count, countText(count));
  }

  figure(key, name, value, text, swatch) {
    let row = this.rows.get(key);
    if (row === undefined) this.rows.set(key, row = this.makeRow(key, name, swatch));
    setText(row.cells[1], text);
    row.cells[1].dataset.value = value;
    this.shown.push(row);
  }

  makeRow(key, name, swatch) {
    const row = element('tr');
    const head = element('th');
    const cell = element('td');
    head.scope = 'row';
    if (swatch !== undefined) head.append(element('i', undefined, `swatch part-${swatch}`));
    head.append(name);
    cell.dataset.name = key;
    row.append(head, cell);
    return row;
  }

  // The parts of reserved bytes as one bar.
  drawParts(state) {
    const svg = svgElement('svg', { viewBox: '0 0 1000 26', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
    let x = 0;
    for (const [name, bytes] of Object.entries(state.parts)) {
      const width = state.reserved > 0 ? 1000 * bytes / state.reserved : 0;
      if (width > 0) svg.append(svgElement('rect', { class: `part-${name}`, x, y: 0, width, height: 26 }));
      x += width;
    }
    this.explorer.byId('state-bar').replaceChildren(svg);
  }
}

// ---- who holds the memory

// Live bytes and blocks of each group at the state.
function sumGroups(state, groups) {
  const { run, event } = state;
  const { free, bytes } = run.trace;
  const held = new Float64Array(groups.names.length);
  const counts = new Uint32Array(groups.names.length);
  for (const block of state.blocks) {
    const request = run.request[block];
    if (free[request] <= event) continue;
    held[groups.of[request]] += bytes[request];
    counts[groups.of[request]]++;
  }
  const sums = [];
  for (let group = 0; group < counts.length; group++)
    if (counts[group] > 0) sums.push({ group, bytes: held[group], count: counts[group] });
  return sums.sort((a, b) => b.bytes - a.bytes || a.group - b.group);
}

// Only rows that are seen are filled at once; the others when no step follows for a moment.
const SITES_ROW = { height: 31, restAfterMs: 150 };

class SitesPanel {
  constructor(explorer) {
    this.explorer = explorer;
    this.table = explorer.byId('sites');
    this.box = this.table.parentElement;
    this.rows = [];
    this.first = 0;
    this.table.addEventListener('click', (event) => this.onClick(event));
    this.box.addEventListener('scroll', () => this.onScroll());
  }

  onScroll() {
    this.first = Math.floor(this.box.scrollTop / SITES_ROW.height);
    this.fillRows(0, this.rows.length);
  }

  draw() {
    const { explorer } = this;
    this.groups = explorer.groups;
    const sums = sumGroups(explorer.state, this.groups);
    this.shown = sums.slice(0, SITES_SHOWN);
    this.palette = explorer.isColouredByGroup ? explorer.colouring.palette() : undefined;
    while (this.rows.length < this.shown.length) this.addRow();
    this.rows.forEach((row, i) => setHidden(row, i >= this.shown.length));
    this.fillRows(this.first, this.first + 16);
    this.fillRest(sums.slice(SITES_SHOWN));
    clearTimeout(this.later);
    this.later = setTimeout(() => this.fillRows(0, this.rows.length), SITES_ROW.restAfterMs);
    const kinds = { site: 'call site', stack: 'call stack', purpose: 'purpose', size: 'size (no call stacks recorded)' };
    setText(explorer.byId('sites-kind'), kinds[this.groups.kind]);
  }

  fillRows(first, end) {
    for (let i = first; i < end && i < this.shown.length; i++) this.fillGroup(this.rows[i], this.shown[i]);
  }

  addRow() {
    const row = element('tr');
    const head = element('th', undefined, 'site');
    const button = element('button', undefined, 'link');
    head.scope = 'row';
    button.type = 'button';
    button.append(element('i', undefined, 'swatch'), element('span'));
    head.append(button);
    this.append(row, head);
    this.rows.push(row);
  }

  // Roles are said, as the rows are not laid out as those of a table.
  append(row, head) {
    row.setAttribute('role', 'row');
    head.setAttribute('role', 'rowheader');
    const cells = [1, 2, 3, 4].map(() => element('td'));
    for (const cell of cells) cell.setAttribute('role', 'cell');
    row.append(head, ...cells);
    this.table.tBodies[0].append(row);
  }

  fillGroup(row, sum) {
    const { explorer, groups } = this;
    const button = row.cells[0].firstChild;
    const [swatch, name] = button.children;
    const isSelected = explorer.group === sum.group;
    const colour = this.palette === undefined ? '' : this.palette[explorer.colouring.codeOf[sum.group]];
    if (row.dataset.group !== String(sum.group) || name.textContent !== groups.names[sum.group]) {
      row.dataset.group = sum.group;
      button.title = groups.names[sum.group];
      setText(name, groups.names[sum.group]);
    }
    if (button.getAttribute('aria-pressed') !== String(isSelected)) {
      button.setAttribute('aria-pressed', String(isSelected));
      row.classList.toggle('selected', isSelected);
    }
    if (swatch.dataset.colour !== colour) {
      swatch.dataset.colour = colour;
      swatch.hidden = colour === '';
      swatch.style.background = colour;
    }
    this.fillCells(row, sum.bytes, sum.count, bytesText(groups.peaks[sum.group]));
  }

  fillCells(row, bytes, count, peak) {
    [bytesText(bytes), percentText(bytes, this.explorer.state.requested), countText(count), peak]
      .forEach((text, i) => setText(row.cells[i + 1], text));
  }

  fillRest(rest) {
    if (this.rest === undefined) {
      this.rest = element('tr');
      this.append(this.rest, element('th', undefined, 'site'));
    }
    if (this.rest.nextSibling !== null) this.table.tBodies[0].append(this.rest);
    setHidden(this.rest, rest.length === 0);
    setText(this.rest.cells[0], `${countText(rest.length)} others`);
    this.fillCells(this.rest, rest.reduce((total, sum) => total + sum.bytes, 0),
      rest.reduce((total, sum) => total + sum.count, 0), '–');
  }

  onClick(event) {
    const row = event.target.closest('tr[data-group]');
    if (row === null || event.target.closest('button') === null) return;
    const group = Number(row.dataset.group);
    this.explorer.highlight(this.explorer.group === group ? undefined : group);
  }
}
