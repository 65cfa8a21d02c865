// The tables beside the map: figures of the state, who holds the memory; and tables that sort.

const PART_NAMES = {
  requested: 'requested', rounding: 'rounding', unsplit: 'unsplit', holes: 'holes in segments in use',
  cached: 'cached segments', waiting: 'waiting for a stream',
};
const SITES_SHOWN = 80;

// The parts of reserved bytes as one bar.
function drawParts(state) {
  const svg = svgElement('svg', { viewBox: '0 0 1000 26', preserveAspectRatio: 'none', 'aria-hidden': 'true' });
  let x = 0;
  for (const [name, bytes] of Object.entries(state.parts)) {
    const width = state.reserved > 0 ? 1000 * bytes / state.reserved : 0;
    if (width > 0) svg.append(svgElement('rect', { class: `part-${name}`, x, y: 0, width, height: 26 }));
    x += width;
  }
  byId('state-bar').replaceChildren(svg);
}

function figureRow(key, name, value, text, swatch) {
  const row = element('tr');
  const head = element('th');
  const cell = element('td', text);
  head.scope = 'row';
  if (swatch !== undefined) head.append(element('i', undefined, `swatch part-${swatch}`));
  head.append(name);
  cell.dataset.name = key;
  cell.dataset.value = value;
  row.append(head, cell);
  return row;
}

function fillState(state) {
  const bytesRow = (key, name, bytes, swatch) =>
    figureRow(key, name, bytes, `${bytesText(bytes)} · ${percentText(bytes, state.reserved)}`, swatch);
  const countRow = (key, name, count) => figureRow(key, name, count, countText(count));
  drawParts(state);
  byId('state-table').tBodies[0].replaceChildren(
    figureRow('reserved', 'reserved', state.reserved, bytesText(state.reserved)),
    ...Object.entries(state.parts).filter(([name, bytes]) => bytes > 0 || name === 'holes')
      .map(([name, bytes]) => bytesRow(name, PART_NAMES[name], bytes, name)),
    bytesRow('allocated', 'allocated (blocks in use)', state.allocated),
    bytesRow('free', 'free inside segments', state.free),
    figureRow('largest-hole', 'largest hole', state.largestHole,
      `${bytesText(state.largestHole)} · ${percentText(state.largestHole, state.free)} of free`),
    countRow('hole-count', 'holes', state.holeCount),
    countRow('segment-count', 'segments', state.segments.length),
    countRow('block-count', 'blocks', state.blocks.length),
  );
}

// Live bytes and blocks of each group at the state.
function sumGroups(state) {
  const { run } = state;
  const { groups } = run.trace;
  const sums = new Map();
  for (const block of state.blocks) {
    if (run.isWaiting(block, state.event)) continue;
    const group = groups.of[run.request[block]];
    const sum = sums.get(group) || { group, bytes: 0, count: 0 };
    sum.bytes += run.trace.bytes[run.request[block]];
    sum.count++;
    sums.set(group, sum);
  }
  return Array.from(sums.values()).sort((a, b) => b.bytes - a.bytes || a.group - b.group);
}

function groupRow(explorer, sum) {
  const { groups } = explorer.trace;
  const row = element('tr');
  const head = element('th', undefined, 'site');
  const button = element('button', undefined, 'link');
  const isBySite = explorer.colouring instanceof GroupColouring && explorer.colour === 'site';
  head.scope = 'row';
  button.type = 'button';
  button.title = groups.frames[sum.group].join('\n');
  button.setAttribute('aria-pressed', String(explorer.group === sum.group));
  if (isBySite) {
    const swatch = element('i', undefined, 'swatch');
    swatch.style.background = explorer.colouring.ofGroup(sum.group);
    button.append(swatch);
  }
  button.append(groups.names[sum.group]);
  button.addEventListener('click', () => explorer.highlight(explorer.group === sum.group ? undefined : sum.group));
  head.append(button);
  row.append(head, ...[[sum.bytes, bytesText(sum.bytes)], [sum.bytes, percentText(sum.bytes, explorer.state.requested)],
    [sum.count, countText(sum.count)], [groups.peaks[sum.group], bytesText(groups.peaks[sum.group])],
  ].map(([value, text]) => {
    const cell = element('td', text);
    cell.dataset.value = value;
    return cell;
  }));
  row.classList.toggle('selected', explorer.group === sum.group);
  return row;
}

function fillSites(explorer) {
  const sums = sumGroups(explorer.state);
  const rows = sums.slice(0, SITES_SHOWN).map((sum) => groupRow(explorer, sum));
  if (sums.length > SITES_SHOWN) {
    const rest = sums.slice(SITES_SHOWN);
    const row = element('tr');
    const bytes = rest.reduce((total, sum) => total + sum.bytes, 0);
    row.append(element('th', `${countText(rest.length)} others`, 'site'), element('td', bytesText(bytes)),
      element('td', percentText(bytes, explorer.state.requested)),
      element('td', countText(rest.reduce((total, sum) => total + sum.count, 0))), element('td', '–'));
    rows.push(row);
  }
  byId('sites-kind').textContent = explorer.trace.groups.isBySite ? 'call site' : 'size (no call stacks recorded)';
  byId('sites').tBodies[0].replaceChildren(...rows);
}

// ---- tables that sort by the column whose head is pressed

function sortValue(row, column) {
  const cell = row.cells[column];
  if (cell.dataset.value !== undefined) return Number(cell.dataset.value);
  return column === 0 ? cell.textContent : -Infinity;
}

function sortTable(table, column, isDown) {
  const body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  rows.sort((a, b) => (isDown ? -1 : 1) * compare(sortValue(a, column), sortValue(b, column)));
  body.replaceChildren(...rows);
}

function makeSortable(table) {
  Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
    const button = element('button', head.textContent, 'sort');
    button.type = 'button';
    button.addEventListener('click', () => {
      const isDown = head.getAttribute('aria-sort') !== 'descending' && column > 0 ||
        head.getAttribute('aria-sort') === 'ascending';
      for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', isDown ? 'descending' : 'ascending');
      sortTable(table, column, isDown);
    });
    head.replaceChildren(button);
  });
}
