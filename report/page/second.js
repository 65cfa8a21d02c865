// A second recording beside the first: another report, or a snapshot of PyTorch, dropped on the page or
// opened by the button. It is read here; nothing is sent anywhere.

const SECOND_LIMIT = 2 ** 30; // bytes, unpacked

// What a file is, by its first bytes.
function kindOf(bytes) {
  const starts = (...head) => head.every((byte, i) => bytes[i] === byte);
  if (bytes.length === 0) return 'empty';
  if (starts(0x28, 0xb5, 0x2f, 0xfd)) return 'zstd';
  if (starts(0x1f, 0x8b)) return 'gzip';
  if (starts(0x50, 0x4b, 3, 4)) return 'zip';
  if (bytes[0] === 0x80 && bytes[1] <= 8) return 'pickle';
  const text = new TextDecoder().decode(bytes.subarray(0, 2048)).replace(/^\ufeff/, '').trimStart();
  if (text.startsWith('{')) return 'json';
  if (/^<(!doctype|html|!--)/i.test(text)) return 'html';
  return 'other';
}

// Unpacks to a limit: a small file may hold any number of bytes.
async function gunzipLimited(bytes) {
  const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip')).getReader();
  const pieces = [];
  let total = 0;
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    total += piece.value.length;
    if (total > SECOND_LIMIT) throw new Error('it unpacks to more than 1 GiB, which a page cannot show');
    pieces.push(piece.value);
  }
  return new Uint8Array(await new Blob(pieces).arrayBuffer());
}

// A report, or a page of PyTorch's _memory_viz, which holds its snapshot in base64. Neither is run: a document
// that was only parsed runs no script and asks for nothing.
function readHtml(bytes, name) {
  const text = new TextDecoder().decode(bytes);
  const other = new DOMParser().parseFromString(text, 'text/html');
  const facts = other.getElementById('data');
  const inside = facts === null ? /"base64":\s*"([A-Za-z0-9+/=]+)"/.exec(text) : null;
  if (inside !== null) return new SnapshotSource(new PickleReader(bytesOfBase64(inside[1])).read(), name);
  if (facts === null) throw new Error('it is a web page, but neither a report of fraglab nor a page of _memory_viz');
  const data = new PageData(other);
  const mine = JSON.parse(byId('data').textContent);
  if (data.facts.schema !== mine.schema)
    throw new Error(`it is of another version (${String(data.facts.schema).slice(0, 40)}; this page is ${mine.schema}): make it again with fraglab ${mine.version}`);
  return new PageSource(data);
}

// The source of traces in a file, or an exception that says what it is instead.
async function readRecording(bytes, name) {
  switch (kindOf(bytes)) {
    case 'gzip': {
      const inside = await gunzipLimited(bytes);
      if (kindOf(inside) === 'gzip') throw new Error('it is compressed twice');
      return readRecording(inside, name);
    }
    case 'pickle': return new SnapshotSource(new PickleReader(bytes).read(), name);
    case 'json': return new SnapshotSource(JSON.parse(new TextDecoder().decode(bytes)), name);
    case 'html': return readHtml(bytes, name);
    case 'zstd': throw new Error(`it is compressed with zstd, which browsers cannot unpack: run 'zstd -d' on it first, or make a page of it with 'fraglab report'`);
    case 'zip': throw new Error('it is a zip archive: unpack it first');
    case 'empty': throw new Error('it is empty');
    default: throw new Error(`it is neither a snapshot of PyTorch (.pickle) nor a report of fraglab (.html); make a page of it with 'fraglab report'`);
  }
}

class SecondRecording {
  // The section is copied before anything is written into it.
  constructor(section) {
    this.template = section.cloneNode(true);
    for (const item of [this.template, ...this.template.querySelectorAll('*')])
      for (const name of ['id', 'aria-labelledby', 'aria-describedby', 'aria-controls'])
        if (item.hasAttribute(name)) item.setAttribute(name, `${item.getAttribute(name)}-2`);
  }

  listen() {
    const input = byId('second-file');
    byId('open-second').hidden = false;
    byId('open-second').addEventListener('click', () => input.click());
    input.addEventListener('change', () => {
      if (input.files.length > 0) this.open(input.files[0]);
      input.value = '';
    });
    byId('open-view').hidden = false;
    byId('open-view').addEventListener('click', () => this.openView());
    byId('close-second').addEventListener('click', () => this.close());
    byId('pick-sync').addEventListener('change', () => this.follow(PAGE.explorers[0]));
    this.listenToDrops();
  }

  listenToDrops() {
    const hasFile = (event) => event.dataTransfer !== null && Array.from(event.dataTransfer.types).includes('Files');
    const show = (isOver) => document.body.classList.toggle('dropping', isOver);
    window.addEventListener('dragover', (event) => {
      if (!hasFile(event)) return;
      event.preventDefault();
      show(true);
    });
    window.addEventListener('dragleave', (event) => {
      if (event.relatedTarget === null) show(false);
    });
    window.addEventListener('drop', (event) => {
      show(false);
      if (!hasFile(event) || event.dataTransfer.files.length === 0) return;
      event.preventDefault();
      this.open(event.dataTransfer.files[0]);
    });
  }

  // Whatever is wrong with the file is said, and the page is as it was.
  async open(file) {
    byId('problem').hidden = true;
    document.body.setAttribute('aria-busy', 'true');
    try {
      if (file.size > SECOND_LIMIT) throw new Error(`it has ${bytesText(file.size)}; a page can read 1 GiB`);
      const source = await readRecording(new Uint8Array(await file.arrayBuffer()), file.name);
      const traces = source.traces();
      if (!isAnyDrawn(traces)) throw new Error('nothing in it can be drawn');
      await this.show(traces, file.name);
    } catch (problem) {
      this.close();
      sayProblem(`${file.name} cannot be shown: ${problem.message}.`);
    }
    document.body.removeAttribute('aria-busy');
    document.body.dataset.second = `${Number(document.body.dataset.second || 0) + 1}`;
  }

  // The recordings of this page once more: another one of them, or the next policy, to be seen side by side.
  async openView() {
    const { traces, trace, run } = PAGE.explorers[0];
    const after = (list, one) => list.find((item) => item.is_drawn && item.number > one.number) || list.find((item) => item.is_drawn);
    const other = after(traces, trace);
    const wanted = other === trace ? { trace: trace.number, policy: after(trace.runs, run).number, event: PAGE.explorers[0].event }
      : { trace: other.number };
    try {
      await this.show(traces, 'Second view', wanted);
    } catch (problem) {
      this.close();
      sayProblem(`There is no second view: ${problem.message}.`);
    }
  }

  async show(traces, name, wanted = {}) {
    this.close();
    const section = this.template.cloneNode(true);
    byId('explorers').append(section);
    section.hidden = false;
    byId('explorers').classList.add('two');
    document.body.classList.add('with-second');
    byId('explorer-title-2').textContent = name;
    byId('second-name').textContent = traces === PAGE.explorers[0].traces ? name : `Beside it: ${name}`;
    const explorer = new Explorer(traces, '-2');
    PAGE.explorers = [PAGE.explorers[0], explorer];
    byId('second-bar').hidden = false;
    await explorer.open(wanted);
    for (const one of PAGE.explorers) one.onSelect = (moved) => this.follow(moved);
    byId('pick-sync').value = explorer.trace.events === PAGE.explorers[0].trace.events ? 'event' : 'share';
    // Another recording of the page stays at its own peak until a cursor is moved.
    if (wanted.trace === undefined) this.follow(PAGE.explorers[0]);
    for (const one of PAGE.explorers) one.redraw();
    byId('second-bar').scrollIntoView();
  }

  close() {
    const section = byId('explorer-2');
    if (section !== null) section.remove();
    byId('explorers').classList.remove('two');
    document.body.classList.remove('with-second');
    byId('second-bar').hidden = true;
    for (const one of PAGE.explorers.splice(1)) one.close();
    for (const one of PAGE.explorers) {
      one.onSelect = () => {};
      one.redraw();
    }
  }

  // The cursor of the other goes where this one's went.
  follow(moved) {
    const kind = byId('pick-sync').value;
    const other = PAGE.explorers.find((one) => one !== moved);
    if (this.isFollowing || other === undefined || other.run === undefined || moved.event === undefined) return;
    if (kind === 'off') return other.redraw(); // its flame graph shows the change
    this.isFollowing = true;
    other.select(this.eventFor(kind, moved, other));
    this.isFollowing = false;
  }

  eventFor(kind, moved, other) {
    const [from, to] = [moved.trace, other.trace];
    if (kind === 'time' && from.times !== undefined && to.times !== undefined)
      return Math.max(to.start, firstAbove(to.times, from.times[moved.event]) - 1);
    const since = moved.event - from.start;
    if (kind === 'event') return to.start + since;
    return to.start + since / Math.max(1, from.last - from.start) * (to.last - to.start);
  }
}
