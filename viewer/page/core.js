// fraglab's library in WebAssembly, with the few calls of WASI that it needs; in a worker of the page, and in node.
//
// The only file is descriptor 0, the recording, which is read piece by piece and never as a whole. Descriptors 1
// and 2 are what the library says when it must end; there is no other file, no clock, no environment and no network.

const WASI = { SUCCESS: 0, BADF: 8, INVAL: 28, NOENT: 44, NOSYS: 52, SPIPE: 70, REGULAR_FILE: 4, CHARACTER_DEVICE: 2 };
const SAID_MAX = 4000;

// What ends an instance; no call may follow.
class CoreEnd extends Error {}

// A descriptor of nothing: a recording that was not opened yet.
const EMPTY_SOURCE = { size: 0, read: () => new Uint8Array(0) };

class Core {
  // bytes of the module; host: progress(what, done, total) and warn(sentence), each may be missing.
  constructor(bytes, host) {
    this.host = host || {};
    this.source = EMPTY_SOURCE;
    this.at = 0;
    this.said = '';
    const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes), this.imports());
    this.wasm = instance.exports;
    this.wasm._initialize();
  }

  // ---- calls: { code, bytes }; code 0 is success, else the bytes are a sentence. Bytes are a copy.

  // source: size, and read(at, bytes) that returns up to so many bytes, none at the end.
  open(source, name) {
    this.source = source;
    this.at = 0;
    try {
      return this.call('viewer_open', name);
    } finally {
      this.source = EMPTY_SOURCE;
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
    if (descriptor !== 0) return WASI.BADF;
    let total = 0;
    for (const room of this.pieces(list, count)) {
      let used = 0;
      while (used < room.length) {
        const got = this.source.read(this.at, room.length - used);
        if (got.length === 0) break;
        room.set(got, used);
        used += got.length;
        this.at += got.length;
      }
      total += used;
      if (used < room.length) break;
    }
    if (total > 0 && this.host.progress) this.host.progress('reading', this.at, this.source.size);
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
    if (descriptor !== 0) return WASI.SPIPE;
    const from = [0, this.at, this.source.size][whence];
    const to = from + Number(offset);
    if (!(to >= 0)) return WASI.INVAL;
    this.at = to;
    this.view().setBigUint64(result >>> 0, BigInt(to), true);
    return WASI.SUCCESS;
  }

  fd_tell(descriptor, result) {
    return this.fd_seek(descriptor, 0n, 1, result);
  }

  typeOf(descriptor) {
    return descriptor === 0 ? WASI.REGULAR_FILE : WASI.CHARACTER_DEVICE;
  }

  fd_fdstat_get(descriptor, result) {
    if (descriptor > 2) return WASI.BADF;
    new Uint8Array(this.wasm.memory.buffer, result >>> 0, 24).fill(0);
    const view = this.view();
    view.setUint8(result >>> 0, this.typeOf(descriptor));
    view.setBigUint64((result >>> 0) + 8, 0xffffffffn, true);
    return WASI.SUCCESS;
  }

  fd_filestat_get(descriptor, result) {
    if (descriptor > 2) return WASI.BADF;
    new Uint8Array(this.wasm.memory.buffer, result >>> 0, 64).fill(0);
    const view = this.view();
    view.setUint8((result >>> 0) + 16, this.typeOf(descriptor));
    view.setBigUint64((result >>> 0) + 32, BigInt(descriptor === 0 ? this.source.size : 0), true);
    return WASI.SUCCESS;
  }

  // No folder is there from the start, so that no path can be opened.
  fd_prestat_get() {
    return WASI.BADF;
  }

  path_open() {
    return WASI.NOENT;
  }

  path_filestat_get() {
    return WASI.NOENT;
  }

  fd_close() {
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

const CORE_REFUSED = ['fd_prestat_dir_name', 'fd_fdstat_set_flags', 'fd_pread', 'fd_readdir', 'path_link',
  'path_readlink', 'path_rename', 'path_unlink_file'];
const MEMORY_SENTENCE = 'the memory that a page can have ran out (4 GB, and no more than the browser gives); ' +
  'run fraglab itself on this file, or cut the recording with \'fraglab trace cut\' and open the part';
