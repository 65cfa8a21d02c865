// fraglab's library in WebAssembly, with the few calls of WASI that it needs; in a worker of the page, and in node.
//
// Descriptor 0 is the recording, which is read piece by piece and never as a whole; 1 and 2 are what the library says
// when it must end; 3 is a folder of files that the page brings along (cards). There is no clock, no environment and no
// network, and nothing can be written.

const WASI = { SUCCESS: 0, BADF: 8, INVAL: 28, NOENT: 44, NOSYS: 52, SPIPE: 70, DIRECTORY: 3, REGULAR_FILE: 4, CHARACTER_DEVICE: 2 };
const ROOT = 3;
const SAID_MAX = 4000;

// What ends an instance; no call may follow.
class CoreEnd extends Error {}

// What is read, at its place: size, and read(at, bytes) that returns up to so many bytes, none at the end.
class Stream {
  constructor(source) {
    this.source = source;
    this.type = WASI.REGULAR_FILE;
    this.at = 0;
  }

  // Fills the room as far as there is something.
  fill(room) {
    let used = 0;
    while (used < room.length) {
      const got = this.source.read(this.at, room.length - used);
      if (got.length === 0) break;
      room.set(got, used);
      used += got.length;
      this.at += got.length;
    }
    return used;
  }
}

function sourceOfBytes(bytes) {
  return { size: bytes.length, read: (at, count) => bytes.subarray(at, at + count) };
}

function emptyStream() {
  return new Stream(sourceOfBytes(new Uint8Array(0)));
}

class Core {
  // bytes of the module; host: progress(what, done, total) and warn(sentence), each may be missing; files: texts by
  // their path, such as 'devices/l4.yaml'.
  constructor(bytes, host, files) {
    this.host = host || {};
    this.files = new Map(Object.entries(files || {}));
    this.opened = new Map([[0, emptyStream()], [ROOT, { type: WASI.DIRECTORY, path: '' }]]);
    this.said = '';
    const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes), this.imports());
    this.wasm = instance.exports;
    this.wasm._initialize();
  }

  // ---- calls: { code, bytes }; code 0 is success, else the bytes are a sentence. Bytes are a copy.

  open(source, name) {
    this.opened.set(0, new Stream(source));
    try {
      return this.call('viewer_open', name);
    } finally {
      this.opened.set(0, emptyStream());
    }
  }

  // Texts and numbers in the order of the function's parameters (viewer/viewer.c).
  call(name, ...given) {
    const texts = [];
    const values = given.map((value) => {
      if (typeof value !== 'string') return value;
      texts.push(this.textOf(value));
      return texts[texts.length - 1];
    });
    try {
      const code = this.wasm[name](...values);
      return { code, bytes: this.answer() };
    } catch (problem) {
      throw problem instanceof CoreEnd ? problem : new CoreEnd(this.endOf(problem));
    } finally {
      for (const text of texts) this.wasm.viewer_free(text);
    }
  }

  // Addresses above 2 GiB come as negative numbers.
  answer() {
    const start = this.wasm.viewer_answer() >>> 0;
    return new Uint8Array(this.wasm.memory.buffer, start, this.wasm.viewer_answer_bytes() >>> 0).slice();
  }

  // A zero inside would end it early.
  textOf(value) {
    const bytes = new TextEncoder().encode(value.split('\0')[0]);
    const start = this.wasm.viewer_alloc(bytes.length + 1) >>> 0;
    if (start === 0) throw new CoreEnd(MEMORY_SENTENCE);
    const room = new Uint8Array(this.wasm.memory.buffer, start, bytes.length + 1);
    room.set(bytes);
    room[bytes.length] = 0;
    return start;
  }

  endOf(problem) {
    const said = this.said.trim();
    return `fraglab ended (${problem.message})${said === '' ? '' : `: ${said}`}`;
  }

  // ---- what the module calls

  imports() {
    const wasi = {};
    for (const name of CORE_REFUSED) wasi[name] = () => WASI.NOSYS;
    for (const name of Object.getOwnPropertyNames(Core.prototype))
      if (/^(fd|path|environ|clock|proc|sched)_/.test(name)) wasi[name] = (...given) => this[name](...given);
    return {
      wasi_snapshot_preview1: wasi,
      fraglab: {
        out_of_memory: () => { throw new CoreEnd(MEMORY_SENTENCE); },
        progress: (what, done, total) => this.host.progress && this.host.progress(this.textAt(what), done, total),
        warn: (sentence) => this.host.warn && this.host.warn(this.textAt(sentence)),
      },
    };
  }

  view() {
    return new DataView(this.wasm.memory.buffer);
  }

  textAt(start) {
    const bytes = new Uint8Array(this.wasm.memory.buffer, start >>> 0);
    return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
  }

  // The pieces of memory that a list of (address, bytes) names.
  pieces(list, count) {
    const view = this.view();
    const found = [];
    for (let i = 0; i < count; i++) {
      const entry = (list >>> 0) + 8 * i;
      found.push(new Uint8Array(this.wasm.memory.buffer, view.getUint32(entry, true), view.getUint32(entry + 4, true)));
    }
    return found;
  }

  fd_read(descriptor, list, count, result) {
    const stream = this.opened.get(descriptor);
    if (!(stream instanceof Stream)) return WASI.BADF;
    let total = 0;
    for (const room of this.pieces(list, count)) {
      const used = stream.fill(room);
      total += used;
      if (used < room.length) break;
    }
    if (descriptor === 0 && total > 0 && this.host.progress) this.host.progress('reading', stream.at, stream.source.size);
    this.view().setUint32(result >>> 0, total, true);
    return WASI.SUCCESS;
  }

  fd_write(descriptor, list, count, result) {
    if (descriptor !== 1 && descriptor !== 2) return WASI.BADF;
    let total = 0;
    for (const bytes of this.pieces(list, count)) {
      this.said = (this.said + new TextDecoder().decode(bytes.slice())).slice(-SAID_MAX);
      total += bytes.length;
    }
    this.view().setUint32(result >>> 0, total, true);
    return WASI.SUCCESS;
  }

  fd_seek(descriptor, offset, whence, result) {
    const stream = this.opened.get(descriptor);
    if (!(stream instanceof Stream)) return WASI.SPIPE;
    const to = [0, stream.at, stream.source.size][whence] + Number(offset);
    if (!(to >= 0)) return WASI.INVAL;
    stream.at = to;
    this.view().setBigUint64(result >>> 0, BigInt(to), true);
    return WASI.SUCCESS;
  }

  fd_tell(descriptor, result) {
    return this.fd_seek(descriptor, 0n, 1, result);
  }

  // Descriptors 1 and 2 are no streams.
  typeOf(descriptor) {
    const file = this.opened.get(descriptor);
    return file !== undefined ? file.type : WASI.CHARACTER_DEVICE;
  }

  isOpen(descriptor) {
    return descriptor === 1 || descriptor === 2 || this.opened.has(descriptor);
  }

  fd_fdstat_get(descriptor, result) {
    if (!this.isOpen(descriptor)) return WASI.BADF;
    new Uint8Array(this.wasm.memory.buffer, result >>> 0, 24).fill(0);
    const view = this.view();
    view.setUint8(result >>> 0, this.typeOf(descriptor));
    view.setBigUint64((result >>> 0) + 8, 0xffffffffn, true);
    view.setBigUint64((result >>> 0) + 16, 0xffffffffn, true);
    return WASI.SUCCESS;
  }

  writeFacts(result, type, size) {
    new Uint8Array(this.wasm.memory.buffer, result >>> 0, 64).fill(0);
    const view = this.view();
    view.setUint8((result >>> 0) + 16, type);
    view.setBigUint64((result >>> 0) + 32, BigInt(size), true);
    return WASI.SUCCESS;
  }

  fd_filestat_get(descriptor, result) {
    if (!this.isOpen(descriptor)) return WASI.BADF;
    const file = this.opened.get(descriptor);
    return this.writeFacts(result, this.typeOf(descriptor), file instanceof Stream ? file.source.size : 0);
  }

  // ---- the folder of files

  fd_prestat_get(descriptor, result) {
    if (descriptor !== ROOT) return WASI.BADF;
    this.view().setUint32(result >>> 0, 0, true);
    this.view().setUint32((result >>> 0) + 4, 1, true);
    return WASI.SUCCESS;
  }

  fd_prestat_dir_name(descriptor, start, bytes) {
    if (descriptor !== ROOT || bytes < 1) return WASI.BADF;
    this.view().setUint8(start >>> 0, '/'.charCodeAt(0));
    return WASI.SUCCESS;
  }

  // What lies at a path: the text of a file, or the names in a folder; undefined: nothing.
  find(path) {
    const text = this.files.get(path);
    if (text !== undefined) return { type: WASI.REGULAR_FILE, text };
    const start = path === '' ? '' : `${path}/`;
    const names = [...new Set([...this.files.keys()].filter((name) => name.startsWith(start)).map((name) => name.slice(start.length).split('/')[0]))];
    return names.length > 0 ? { type: WASI.DIRECTORY, names } : undefined;
  }

  pathAt(start, bytes) {
    const text = new TextDecoder().decode(new Uint8Array(this.wasm.memory.buffer, start >>> 0, bytes).slice());
    return text.split('/').filter((part) => part !== '' && part !== '.').join('/');
  }

  path_filestat_get(descriptor, flags, start, bytes, result) {
    const found = this.find(this.pathAt(start, bytes));
    return found === undefined ? WASI.NOENT : this.writeFacts(result, found.type, (found.text || '').length);
  }

  path_open(descriptor, lookup, start, bytes, flags, rights, inherited, mode, result) {
    const found = this.find(this.pathAt(start, bytes));
    if (found === undefined) return WASI.NOENT;
    let next = ROOT + 1;
    while (this.opened.has(next)) next++;
    this.opened.set(next, found.type === WASI.DIRECTORY ? found : new Stream(sourceOfBytes(new TextEncoder().encode(found.text))));
    this.view().setUint32(result >>> 0, next, true);
    return WASI.SUCCESS;
  }

  // Entries of 24 bytes with their name behind; the last may be cut off, and is asked for again then.
  fd_readdir(descriptor, start, room, cookie, result) {
    const folder = this.opened.get(descriptor);
    if (folder === undefined || folder.names === undefined) return WASI.BADF;
    const view = this.view();
    let used = 0;
    for (let i = Number(cookie); i < folder.names.length && used < room; i++) {
      const name = new TextEncoder().encode(folder.names[i]);
      const entry = new Uint8Array(24 + name.length);
      const facts = new DataView(entry.buffer);
      facts.setBigUint64(0, BigInt(i + 1), true);
      facts.setBigUint64(8, BigInt(i + 1), true);
      facts.setUint32(16, name.length, true);
      facts.setUint8(20, WASI.REGULAR_FILE);
      entry.set(name, 24);
      const part = entry.subarray(0, Math.min(entry.length, room - used));
      new Uint8Array(view.buffer, (start >>> 0) + used, part.length).set(part);
      used += part.length;
    }
    view.setUint32(result >>> 0, used, true);
    return WASI.SUCCESS;
  }

  fd_close(descriptor) {
    if (descriptor > ROOT) this.opened.delete(descriptor);
    return WASI.SUCCESS;
  }

  environ_sizes_get(count, bytes) {
    this.view().setUint32(count >>> 0, 0, true);
    this.view().setUint32(bytes >>> 0, 0, true);
    return WASI.SUCCESS;
  }

  environ_get() {
    return WASI.SUCCESS;
  }

  // Nothing that is computed depends on time.
  clock_time_get(clock, precision, result) {
    this.view().setBigUint64(result >>> 0, 0n, true);
    return WASI.SUCCESS;
  }

  sched_yield() {
    return WASI.SUCCESS;
  }

  proc_exit(code) {
    throw new CoreEnd(this.endOf(new Error(`exit code ${code}`)));
  }
}

const CORE_REFUSED = ['fd_fdstat_set_flags', 'fd_filestat_set_size', 'fd_pread', 'path_link', 'path_readlink', 'path_rename', 'path_unlink_file'];
// As viewer/viewer.c says it.
const MEMORY_SENTENCE = 'the memory that a page can have (4 GB) is not enough for this recording; run fraglab itself on it, ' +
  "or cut it with 'fraglab trace cut' and open the part";
