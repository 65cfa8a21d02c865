// The library in WebAssembly, without a browser, against the command line: core_test.js PROGRAM MODULE NAME runs the
// test of that name below. Rows, explanations and pages are to be the same bytes.
'use strict';

const assert = require('assert');
const { spawnSync } = require('child_process');
const fs = require('fs');
const path = require('path');

const [program, module_path, name, measured] = process.argv.slice(2);
const SCRIPT = path.join(__dirname, '..', '..', 'viewer', 'page', 'core.js');
const { Core, CoreEnd } = new Function(`${fs.readFileSync(SCRIPT, 'utf8')}; return { Core, CoreEnd };`)();
const CARDS = Object.fromEntries(fs.readdirSync('devices').map((file) => [`devices/${file}`, fs.readFileSync(path.join('devices', file), 'utf8')]));
const MODULE = fs.readFileSync(module_path);
const SAMPLES = 'traces/samples';
const samples = fs.readdirSync(SAMPLES).filter((file) => file.endsWith('.pickle.zst')).map((file) => path.join(SAMPLES, file));
// Recordings that a page opens; the other folders are of inputs that it never sees.
const CORPUS = ['fgt', 'golden', 'kineto_trace', 'memory_timeline', 'minimalloc_csv', 'pickle', 'rmm_log', 'snapshot_text',
  'stalloc_log', 'text_trace'];

function textOf(bytes) {
  return new TextDecoder().decode(bytes);
}

// What the command prints, and its exit code.
function line(...words) {
  const done = spawnSync(program, words, { encoding: 'utf8', maxBuffer: 2 ** 30 });
  return { code: done.status, out: done.stdout, problem: done.stderr };
}

// Pieces of odd sizes, as a page may get them.
function sourceOf(bytes) {
  return { size: bytes.length, read: (at, count) => bytes.subarray(at, at + Math.min(count, 100003)) };
}

function open(file, core = new Core(MODULE, {}, CARDS)) {
  const answer = core.open(sourceOf(fs.readFileSync(file)), path.basename(file));
  assert.strictEqual(answer.code, 0, textOf(answer.bytes));
  return core;
}

function ask(core, call, ...given) {
  const answer = core.call(call, ...given);
  assert.strictEqual(answer.code, 0, textOf(answer.bytes));
  return textOf(answer.bytes);
}

const tests = {
  rows_are_those_of_the_command_line() {
    let rows = 0;
    const policies = ['pytorch', 'best-fit', 'pytorch:expandable_segments=True', 'tlsf', 'frugal', 'buddy'];
    for (const file of samples) {
      const core = open(file);
      for (const capacity of ['', '2GiB']) {
        const limit = capacity === '' ? [] : ['--capacity', capacity];
        for (const policy of policies) {
          const expected = line('run', file, '--policy', policy, ...limit, '--format', 'jsonl');
          assert.strictEqual(ask(core, 'viewer_run', policy, capacity, 0, 0), expected.out, `${file} ${policy} ${capacity}`);
          rows += expected.out.split('\n').length - 1;
        }
      }
    }
    assert.ok(rows > 100, `${rows} rows`);
  },

  bounds_and_skipped_requests_are_too() {
    for (const file of samples.slice(0, 4)) {
      const core = open(file);
      const words = ['run', file, '--policy', 'pytorch', '--policy', 'best-fit', '--capacity', '2GiB', '--format', 'jsonl', '--bounds', '--on-oom', 'skip'];
      assert.strictEqual(ask(core, 'viewer_run', ' pytorch \n\nbest-fit', '2GiB', 1, 1), line(...words).out, file);
    }
  },

  cards_are_those_of_the_command_line() {
    const core = open(samples[0]);
    assert.strictEqual(ask(core, 'viewer_cards'), line('device', 'list', '--format', 'jsonl').out);
    for (const file of samples.slice(0, 4))
      for (const gpu of ['rtx4090', 'l4', '3060', 'H100 80GB']) {
        const expected = line('run', file, '--policy', 'pytorch', '--gpu', gpu, '--format', 'jsonl');
        const answer = open(file, core).call('viewer_run', 'pytorch', gpu, 0, 0);
        if (expected.code === 0) assert.strictEqual(textOf(answer.bytes), expected.out, `${file} ${gpu}`);
        else assert.ok(answer.code === expected.code && expected.problem.includes(textOf(answer.bytes).split(': ').pop()), textOf(answer.bytes));
      }
  },

  least_capacities_and_leaks_are_too() {
    for (const file of samples.slice(0, 5)) {
      const core = open(file);
      const expected = line('min-capacity', file, '--policy', 'pytorch', '--format', 'jsonl').out.trim().split('\n').map((row) => JSON.parse(row));
      const found = ask(core, 'viewer_least', 'pytorch').trim().split('\n').map((row) => JSON.parse(row));
      assert.deepStrictEqual(found.map((one) => one.capacity_bytes), expected.map((row) => row.capacity_bytes), file);
      for (const [gpu, words] of [['', []], ['l4', ['--gpu', 'l4']]]) {
        const leaks = line('leaks', file, ...words, '--format', 'json');
        const answer = core.call('viewer_leaks', gpu);
        if (leaks.code > 1) assert.strictEqual(answer.code, leaks.code, `${file}: ${textOf(answer.bytes)}; ${leaks.problem}`);
        else assert.deepStrictEqual(JSON.parse(textOf(answer.bytes)), JSON.parse(leaks.out), file);
      }
    }
  },

  explanations_are_those_of_the_command_line() {
    let explained = 0;
    for (const file of samples) {
      const core = open(file);
      for (const capacity of ['', '3GiB']) {
        const expected = line('explain', file, ...(capacity === '' ? [] : ['--capacity', capacity]));
        const answer = core.call('viewer_explain', capacity, 1);
        if (expected.code !== 0) assert.ok(expected.problem.includes(textOf(answer.bytes).split(': ').pop()), textOf(answer.bytes));
        else assert.strictEqual(textOf(answer.bytes), expected.out, `${file} ${capacity}`);
        explained += expected.code === 0 ? 1 : 0;
      }
    }
    assert.ok(explained > 3, `${explained} explanations`);
  },

  pages_are_those_of_the_command_line() {
    for (const file of samples) {
      const core = open(file);
      const command = `fraglab report ${file} --policy pytorch --policy best-fit --capacity 4GiB`;
      const expected = line(...command.split(' ').slice(1));
      assert.strictEqual(expected.code, 0, expected.problem);
      assert.ok(ask(core, 'viewer_report', 'pytorch\nbest-fit', '4GiB', 0, command) === expected.out, `${file}: another page`);
    }
  },

  // A damaged file is refused by the same sentence, and the next file is read as if nothing had been.
  damaged_files_are_refused_in_the_same_words() {
    const core = new Core(MODULE);
    const counts = { read: 0, refused: 0 };
    for (const folder of CORPUS.map((one) => path.join('tests/fuzz/corpus', one)))
      for (const file of fs.readdirSync(folder).map((one) => path.join(folder, one))) {
        const opened = core.open(sourceOf(fs.readFileSync(file)), path.basename(file));
        const answer = opened.code === 0 ? core.call('viewer_run', 'best-fit', '', 0, 0) : opened;
        const expected = line('run', file, '--policy', 'best-fit', '--format', 'jsonl');
        const text = textOf(answer.bytes);
        assert.strictEqual(answer.code, expected.code, `${file}: ${text}; ${expected.problem}`);
        counts[answer.code === 0 ? 'read' : 'refused']++;
        if (answer.code === 0) assert.strictEqual(text, expected.out, file);
        else assert.ok(expected.problem.includes(text.split(': ').pop()), `${file}: ${text}; ${expected.problem}`);
      }
    assert.ok(counts.read > 20 && counts.refused > 5, JSON.stringify(counts));
  },

  // Bytes changed at random: no call ends the instance, however the file is damaged.
  changed_bytes_never_end_the_instance() {
    const core = new Core(MODULE);
    let seed = 1;
    const random = (below) => {
      seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
      return Math.floor((seed / 2 ** 32) * below);
    };
    for (const folder of CORPUS.map((one) => path.join('tests/fuzz/corpus', one)))
      for (const file of fs.readdirSync(folder)) {
        const bytes = fs.readFileSync(path.join(folder, file));
        for (let round = 0; round < 20; round++) {
          const changed = new Uint8Array(bytes.subarray(0, round % 4 === 3 ? random(bytes.length + 1) : bytes.length));
          for (let i = 0; i < 1 + round && changed.length > 0; i++) changed[random(changed.length)] = random(256);
          const answer = core.open(sourceOf(changed), 'changed');
          if (answer.code === 0) core.call('viewer_run', 'pytorch', '', 0, 0);
        }
      }
    open(samples[0], core);
  },

  what_is_wrong_is_said() {
    const core = new Core(MODULE, {}, CARDS);
    const refused = (pattern, ...given) => {
      const answer = core.call(...given);
      assert.notStrictEqual(answer.code, 0);
      assert.match(textOf(answer.bytes), pattern);
    };
    refused(/no recording is open/, 'viewer_run', 'pytorch', '', 0, 0);
    refused(/no recording is open/, 'viewer_report', '', '', 0, '');
    open(samples[0], core);
    refused(/no-such-policy/, 'viewer_run', 'no-such-policy', '', 0, 0);
    refused(/unknown unit/, 'viewer_explain', '5 parsecs', 1);
    refused(/5 parsecs/, 'viewer_run', 'pytorch', '5 parsecs', 0, 0);
    refused(/more than 32/, 'viewer_run', 'pytorch\n'.repeat(33), '', 0, 0);
    refused(/cannot be opened|cannot be loaded|not/, 'viewer_run', './policy.so', '', 0, 0);
    const sqlite = Buffer.alloc(4096);
    sqlite.write('SQLite format 3\0');
    const answer = core.open(sourceOf(sqlite), 'x.sqlite');
    assert.match(textOf(answer.bytes), /viewer cannot read/);
  },

  // Without memory the call fails, or the instance ends, both with the same sentence.
  memory_that_runs_out_is_said() {
    const ends = { failed: 0, ended: 0 };
    const file = 'traces/samples/gpt-train.pickle.zst';
    for (const kept of [0, 8, 40, 'all']) {
      const core = kept === 'all' ? open(file) : new Core(MODULE);
      const { memory } = core.wasm;
      memory.grow(65535 - memory.buffer.byteLength / 65536 - (kept === 'all' ? 0 : kept));
      try {
        const answer = kept === 'all' ? core.call('viewer_run', 'gmlake', '', 0, 0) : core.open(sourceOf(fs.readFileSync(file)), 'x');
        assert.notStrictEqual(answer.code, 0);
        assert.match(textOf(answer.bytes), /memory that a page can have/);
        ends.failed++;
      } catch (problem) {
        assert.ok(problem instanceof CoreEnd, problem);
        assert.match(problem.message, /memory that a page can have/);
        ends.ended++;
      }
    }
    assert.ok(ends.failed > 0 && ends.ended > 0, JSON.stringify(ends));
  },

  // Not a test: what the memory of a page is, in MiB.
  measure() {
    const file = fs.openSync(measured, 'r');
    const room = Buffer.alloc(2 ** 20);
    const read = (at, count) => room.subarray(0, fs.readSync(file, room, 0, Math.min(count, room.length), at));
    const core = new Core(MODULE);
    const mib = () => Math.round(core.wasm.memory.buffer.byteLength / 2 ** 20);
    core.open({ size: fs.fstatSync(file).size, read }, measured);
    const open_mib = mib();
    ask(core, 'viewer_report', 'pytorch', '', 0, '');
    console.log(JSON.stringify({ open_mib, page_mib: mib() }));
  },

  converted_recordings_give_the_same_rows() {
    for (const file of samples) {
      const core = open(file);
      const expected = JSON.parse(ask(core, 'viewer_run', 'pytorch', '', 0, 0).split('\n')[0]);
      const written = core.call('viewer_convert');
      assert.strictEqual(written.code, 0);
      const again = new Core(MODULE);
      assert.strictEqual(again.open(sourceOf(written.bytes), path.basename(file)).code, 0);
      const row = JSON.parse(ask(again, 'viewer_run', 'pytorch', '', 0, 0).split('\n')[0]);
      assert.deepStrictEqual(row, expected, file);
    }
  },
};

tests[name]();
