// The worker of the viewer's page: opens a file and answers calls, so that the page stays responsive.

// Reading in larger pieces than the library asks for is faster.
const PIECE_BYTES = 16 * 2 ** 20;
const PROGRESS_EVERY_MS = 100;

class FileSource {
  constructor(file) {
    this.file = file;
    this.size = file.size;
    this.reader = new FileReaderSync();
    this.piece = new Uint8Array(0);
    this.start = 0;
  }

  read(at, bytes) {
    if (at >= this.size) return new Uint8Array(0);
    if (at < this.start || at >= this.start + this.piece.length) {
      this.piece = new Uint8Array(this.reader.readAsArrayBuffer(this.file.slice(at, at + PIECE_BYTES)));
      this.start = at;
    }
    return this.piece.subarray(at - this.start, at - this.start + bytes);
  }
}

let core;
let lastProgress = 0;

const host = {
  progress(what, done, total) {
    const now = performance.now();
    if (now - lastProgress < PROGRESS_EVERY_MS) return;
    lastProgress = now;
    postMessage({ progress: { what, done, total } });
  },
  warn(sentence) {
    postMessage({ warning: sentence });
  },
};

// { module, files } starts; { call, given } or { file, name } asks. Answers come in the order of the questions.
function answer(message) {
  if (message.module !== undefined) {
    core = new Core(message.module, host, message.files);
    return { code: 0, bytes: new Uint8Array(0) };
  }
  if (message.file !== undefined) return core.open(new FileSource(message.file), message.name);
  return core.call(message.call, ...message.given);
}

onmessage = (event) => {
  try {
    const { code, bytes } = answer(event.data);
    postMessage({ code, bytes }, [bytes.buffer]);
  } catch (problem) {
    postMessage({ ended: problem.message });
  }
};
