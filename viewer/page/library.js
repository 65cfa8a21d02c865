// The worker that has the library, as promises; and what it shows while it works.

class Library {
  // onProgress(what, done, total), onWarning(sentence).
  constructor(onProgress, onWarning) {
    this.onProgress = onProgress;
    this.onWarning = onWarning;
    this.waiting = undefined;
  }

  // A worker of its own that this page brings along; also after one was ended.
  async start() {
    if (this.module === undefined) {
      this.module = await this.unpack('module');
      this.files = JSON.parse(new TextDecoder().decode(await this.unpack('files')));
      this.code = URL.createObjectURL(new Blob([byId('worker').textContent], { type: 'text/javascript' }));
    }
    this.worker = new Worker(this.code);
    this.worker.onmessage = (event) => this.take(event.data);
    this.worker.onerror = (event) => this.take({ ended: event.message || 'the worker cannot start' });
    await this.ask({ module: this.module, files: this.files });
  }

  // What the page carries; its text is given back to the browser.
  async unpack(id) {
    const carrier = byId(id);
    const bytes = await gunzip(bytesOfBase64(carrier.textContent.trim()));
    carrier.textContent = '';
    return bytes;
  }

  take(message) {
    if (message.progress !== undefined) {
      this.onProgress(message.progress.what, message.progress.done, message.progress.total);
      return;
    }
    if (message.warning !== undefined) {
      this.onWarning(message.warning);
      return;
    }
    const { resolve, reject } = this.waiting;
    this.waiting = undefined;
    if (message.ended !== undefined) {
      this.end();
      reject(new Error(message.ended));
    } else if (message.code !== 0) {
      reject(new Error(new TextDecoder().decode(message.bytes)));
    } else {
      resolve(message.bytes);
    }
  }

  // The bytes of the answer, or an error with the library's sentence. One question at a time.
  ask(message) {
    if (this.worker === undefined) return Promise.reject(new Error('no recording is open'));
    if (this.waiting !== undefined) return Promise.reject(new Error('the page is still at work'));
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
      this.worker.postMessage(message);
    });
  }

  async text(call, ...given) {
    return new TextDecoder().decode(await this.ask({ call, given }));
  }

  // What runs is given up; start() brings another worker.
  end() {
    if (this.worker !== undefined) this.worker.terminate();
    this.worker = undefined;
  }

  stop() {
    this.end();
    if (this.waiting !== undefined) this.waiting.reject(new Error('stopped'));
    this.waiting = undefined;
  }
}
