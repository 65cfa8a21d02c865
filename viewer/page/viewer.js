// The viewer's page: opens a recording, shows what it is, why memory ran out, what other settings would have done, and
// the page of a report with its explorer.
//
// Texts of a recording become text, never markup. The report's page is written by the library; it is shown in a frame
// without rights to this page, where nothing but the report's own script may run (the policy in viewer.html names it).

const MEMORY_CALLS = ['malloc', 'free', 'reserve', 'unreserve', 'map', 'unmap', 'malloc_async', 'free_async'];
const EVENTS_FOR_ALL_POLICIES = 500000;

class Viewer {
  constructor() {
    this.core = new Library((what, done, total) => this.showProgress(what, done, total), (sentence) => this.warn(sentence));
    this.rows = [];
    this.opened = 0;
  }

  async start() {
    new Theme(() => {});
    this.listen();
    await this.core.start();
    byId('version').textContent = `fraglab ${await this.core.text('viewer_version')}`;
    const policies = linesOf(await this.core.text('viewer_policies')).map((line) => JSON.parse(line).name);
    byId('policies').replaceChildren(...policies.map((name) => Object.assign(element('option'), { value: name })));
    this.cards = linesOf(await this.core.text('viewer_cards')).map((line) => JSON.parse(line));
    byId('devices').replaceChildren(...this.cards.map(({ gpu, name, total_bytes: total }) =>
      Object.assign(element('option'), { value: gpu, label: `${name}, ${bytesText(total)}` })));
    byId('choose').disabled = false;
    this.say('Ready.');
  }

  listen() {
    byId('choose').addEventListener('click', () => byId('file').click());
    byId('file').addEventListener('change', () => {
      if (byId('file').files.length > 0) this.open(byId('file').files[0]);
      byId('file').value = '';
    });
    byId('stop').addEventListener('click', () => this.core.stop());
    byId('what-if').addEventListener('submit', (event) => {
      event.preventDefault();
      this.work('Replaying…', () => this.replay());
    });
    byId('ask').addEventListener('click', () => this.work('Explaining…', async () => {
      await this.explain();
      byId('explanation-title').scrollIntoView();
    }));
    byId('least').addEventListener('click', () => this.work('Searching…', () => this.findLeast()));
    byId('leaks').addEventListener('click', () => this.work('Searching…', () => this.findLeaks()));
    byId('draw').addEventListener('click', () => this.work('Drawing…', () => this.draw(this.policyLines())));
    byId('save-rows').addEventListener('click', () => save(this.rows.join(''), `${this.name}.rows.jsonl`));
    byId('save-page').addEventListener('click', () => save(this.page, `${this.name}.html`));
    byId('save-trace').addEventListener('click', () => this.work('Writing…', () => this.convert()));
    this.listenToDrops();
  }

  listenToDrops() {
    const hasFile = (event) => event.dataTransfer !== null && Array.from(event.dataTransfer.types).includes('Files');
    window.addEventListener('dragover', (event) => {
      if (!hasFile(event)) return;
      event.preventDefault();
      document.body.classList.add('dropping');
    });
    window.addEventListener('dragleave', (event) => {
      if (event.relatedTarget === null) document.body.classList.remove('dropping');
    });
    window.addEventListener('drop', (event) => {
      document.body.classList.remove('dropping');
      if (!hasFile(event) || event.dataTransfer.files.length === 0) return;
      event.preventDefault();
      this.open(event.dataTransfer.files[0]);
    });
  }

  // ---- while the library works

  say(text) {
    setText(byId('state'), text);
  }

  warn(sentence) {
    const target = byId('warnings');
    target.hidden = false;
    target.textContent = `${target.textContent} ${sentence}`.trim();
  }

  showProgress(what, done, total) {
    const bar = byId('progress');
    bar.hidden = false;
    if (total > 0) bar.value = done / total;
    else bar.removeAttribute('value');
    this.say(what === 'reading' ? `Reading: ${bytesText(done)} of ${bytesText(total)}`
      : `${what}: ${countText(done)}${total > 0 ? ` of ${countText(total)}` : ''}`);
  }

  // One piece of work at a time; what goes wrong is said. Resolves when the page is quiet again.
  async work(text, job) {
    if (this.isBusy) return;
    this.isBusy = true;
    byId('problem').hidden = true;
    document.body.setAttribute('aria-busy', 'true');
    byId('stop').hidden = false;
    this.say(text);
    const start = performance.now();
    try {
      await job();
      this.say(`Done in ${((performance.now() - start) / 1000).toFixed(1)} s.`);
    } catch (problem) {
      byId('problem').textContent = problem.message;
      byId('problem').hidden = false;
      this.say('');
      if (this.core.worker === undefined) await this.startAgain();
    }
    this.isBusy = false;
    document.body.removeAttribute('aria-busy');
    byId('stop').hidden = true;
    byId('progress').hidden = true;
    document.body.dataset.works = `${Number(document.body.dataset.works || 0) + 1}`;
  }

  // The recording was in the memory of the worker that ended.
  async startAgain() {
    this.close();
    await this.core.start();
  }

  // ---- a recording

  close() {
    byId('opened').hidden = true;
    for (const id of ['explorer', 'facts', 'explanation']) byId(id).replaceChildren();
    byId('rows').tBodies[0].replaceChildren();
    byId('rows').hidden = true;
    for (const id of ['keep', 'least-text', 'leaking']) byId(id).hidden = true;
    byId('warnings').hidden = true;
    byId('warnings').textContent = '';
    byId('save-page').disabled = true;
    this.rows = [];
    this.page = undefined;
  }

  open(file) {
    return this.work('Reading…', async () => {
      this.close();
      this.name = file.name;
      const answer = await this.core.ask({ file, name: file.name });
      this.recording = JSON.parse(new TextDecoder().decode(answer));
      byId('recording-title').textContent = file.name;
      this.showFacts(file);
      byId('opened').hidden = false;
      await this.draw(this.firstPolicies());
      await this.replay();
      await this.explainIfRanOut();
      document.body.dataset.opened = `${++this.opened}`;
    });
  }

  showFacts(file) {
    const { recorded_by: by, traces } = this.recording;
    const add = (list, what, value) => {
      const group = element('div');
      group.append(element('dt', what), element('dd', value));
      list.push(group);
    };
    const facts = [];
    const sum = (key) => traces.reduce((total, trace) => total + trace[key], 0);
    add(facts, 'file', bytesText(file.size));
    if (by !== null) add(facts, 'recorded by', by);
    add(facts, 'traces', countText(traces.length));
    add(facts, 'events', countText(sum('event_count')));
    add(facts, 'requests', countText(sum('request_count')));
    add(facts, 'peak requested', bytesText(Math.max(0, ...traces.map((trace) => trace.peak_requested_bytes))));
    if (sum('failed_count') > 0) add(facts, 'failed requests', countText(sum('failed_count')));
    byId('facts').replaceChildren(...facts);
  }

  // "": those that `fraglab report` takes; of long recordings the first alone, so that it opens soon.
  firstPolicies() {
    const events = this.recording.traces.reduce((total, trace) => total + trace.event_count, 0);
    return events > EVENTS_FOR_ALL_POLICIES ? 'pytorch' : '';
  }

  policyLines() {
    const known = this.rows.map((row) => JSON.parse(row).policy.label);
    return [...new Set([...known, byId('policy').value.trim()])].join('\n');
  }

  device() {
    return byId('device').value.trim();
  }

  // Of a card, what is left beside its context.
  capacity() {
    const device = this.device();
    const card = this.cards.find(({ gpu }) => gpu === device);
    return card === undefined ? device : `${card.total_bytes - card.context_bytes}B`;
  }

  // ---- what is shown of it

  async draw(policies) {
    const device = this.device();
    const words = ['fraglab report', this.name, ...linesOf(policies).map((line) => `--policy ${line}`),
      ...(device === '' ? [] : [`${/^\d.*B$/.test(device) ? '--capacity' : '--gpu'} ${device}`])];
    this.page = await this.core.ask({ call: 'viewer_report', given: [policies, device, 0, words.join(' ')] });
    const frame = element('iframe');
    frame.title = 'Explorer';
    frame.setAttribute('sandbox', 'allow-scripts');
    frame.src = URL.createObjectURL(new Blob([this.page], { type: 'text/html' }));
    await new Promise((resolve) => {
      frame.addEventListener('load', resolve);
      byId('explorer').replaceChildren(frame);
    });
    URL.revokeObjectURL(frame.src);
    byId('save-page').disabled = false;
  }

  async replay() {
    const lines = await this.core.text('viewer_run', byId('policy').value, this.device(), 0, 0);
    for (const line of linesOf(lines)) {
      this.rows.push(`${line}\n`);
      byId('rows').tBodies[0].append(rowOf(JSON.parse(line)));
    }
    byId('rows').hidden = false;
    byId('keep').hidden = false;
  }

  async explain() {
    byId('explanation').textContent = await this.core.text('viewer_explain', this.capacity(), 1);
  }

  // A recording that did not run out has nothing to explain until a capacity is given.
  async explainIfRanOut() {
    try {
      await this.explain();
    } catch (problem) {
      if (this.core.worker === undefined) throw problem;
      byId('explanation').textContent = `${problem.message}\n\nName a device above and ask again.`;
    }
  }

  async findLeast() {
    const policy = byId('policy').value.trim();
    const lines = linesOf(await this.core.text('viewer_least', policy)).map((line) => JSON.parse(line));
    byId('least-text').textContent = lines.map(({ trace, capacity_bytes: bytes }) =>
      `${policy}, trace ${trace}: ${bytes === null ? 'no device is large enough' : `runs to the end with ${bytesText(bytes)} and no less`}`).join('; ');
    byId('least-text').hidden = false;
  }

  async findLeaks() {
    const found = JSON.parse(await this.core.text('viewer_leaks', this.device()));
    const { count, by, name } = found.steps;
    const how = { marks: `by the marks '${name}'`, requests: `found by requests of ${name}` }[by] || 'of equal length, as no steps were found';
    const { forecast } = found;
    const end = forecast === null ? '' : forecast.oom_step === null ? ' The device is not full in any step that was looked at.'
      : ` The device is full in ${forecast.is_rough ? 'about ' : ''}step ${countText(forecast.oom_step)}.`;
    byId('leaking-text').textContent = `${countText(count)} ${count === 1 ? 'step' : 'steps'}, ${how}. ${found.leaks.length === 0
      ? 'No leak: at the lowest point of each step no more is kept than before.' : ''}${end}`;
    byId('leaking-rows').tBodies[0].replaceChildren(...found.leaks.map(leakRow));
    byId('leaking-rows').hidden = found.leaks.length === 0;
    byId('leaking').hidden = false;
    byId('leaking-title').scrollIntoView();
  }

  async convert() {
    const bytes = await this.core.ask({ call: 'viewer_convert', given: [] });
    save(bytes, `${this.name.replace(/\.(zst|gz)$/, '').replace(/\.[a-z]+$/, '')}.fgt`);
  }
}

// ---- rows and files

function linesOf(text) {
  return text.split('\n').filter((line) => line !== '');
}

// Calls that take or return memory, as the command line counts them.
function callsOf(row) {
  return MEMORY_CALLS.reduce((total, name) => total + row.device_calls[name], 0);
}

function rowOf(row) {
  const made = element('tr');
  const head = element('th', row.policy.label, 'policy');
  head.scope = 'row';
  const { capacity_bytes: capacity, gpu } = row.device;
  const cells = [
    `${row.trace.device}`, capacity === null ? 'unlimited' : `${gpu === null ? '' : `${gpu}, `}${bytesText(capacity)}`, bytesText(row.peak.reserved_bytes),
    bytesText(row.peak.requested_bytes), countText(callsOf(row)),
  ].map((text) => element('td', text));
  const oom = row.oom;
  cells.push(element('td', oom === null ? '–' : `at event ${countText(oom.event)}, ${bytesText(oom.requested_bytes)} asked`,
    oom === null ? 'oom none' : 'oom'));
  made.append(head, ...cells);
  return made;
}

function leakRow(leak) {
  const made = element('tr');
  const head = element('th', [leak.name || 'blocks of changing sizes', leak.inner].filter((text) => text).join(', '), 'policy');
  head.scope = 'row';
  const cells = [bytesText(Math.round(leak.bytes_per_step)), `${Number(leak.blocks_per_step.toPrecision(3))}`, bytesText(leak.end_bytes),
    countText(leak.first_step), leak.confidence, leak.kind].map((text) => element('td', text));
  made.append(head, ...cells);
  return made;
}

function save(content, name) {
  const link = element('a');
  link.href = URL.createObjectURL(new Blob([content]));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

const VIEWER = new Viewer();
VIEWER.start().catch((problem) => {
  byId('problem').textContent = `The viewer cannot start: ${problem.message}. It needs WebAssembly, workers and DecompressionStream ` +
    '(Chromium 80, Firefox 113, Safari 16.4 and what came after).';
  byId('problem').hidden = false;
});
