'use strict';

// Columns of whole numbers, as report/columns.c prints them: base64 of gzip of varints.

function bytesOfBase64(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function gunzip(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const PIECE_MS = 20000;

// The text of a file beside the page (report/page_piece.c): shown in a frame without rights, it hands its text over. Text
// is all that is taken from it.
function textOfPiece(path) {
  return new Promise((resolve, reject) => {
    const frame = document.createElement('iframe');
    const end = (settle, value) => {
      removeEventListener('message', listen);
      frame.remove();
      settle(value);
    };
    const listen = (event) => {
      if (event.source === frame.contentWindow && typeof event.data === 'string') end(resolve, event.data);
    };
    addEventListener('message', listen);
    frame.hidden = true;
    frame.sandbox = 'allow-scripts';
    // A file that is not there ends as a page that hands over nothing.
    frame.addEventListener('load', () => setTimeout(() => end(reject,
      new Error(`${path} is missing; the folder belongs beside this page`)), PIECE_MS));
    frame.src = path;
    document.body.append(frame);
  });
}

// The data elements of a page: of this one, or of another report that was read from a file.
class PageData {
  constructor(root) {
    this.root = root;
    this.facts = JSON.parse(root.getElementById('data').textContent);
  }

  // Each element is read once: its text is given back to the browser.
  async bytes(id) {
    const element = this.root.getElementById(id);
    const text = element.dataset.piece === undefined ? element.textContent : await this.piece(element.dataset.piece);
    element.textContent = '';
    return gunzip(bytesOfBase64(text));
  }

  // Of a report that was read from a file nothing is asked for.
  piece(path) {
    if (this.root !== document) throw new Error('its data are in a folder beside it: open it by itself, or make it without --data-dir');
    return textOfPiece(path);
  }

  async columns(id) {
    return new ColumnReader(await this.bytes(id));
  }

  async json(id) {
    return JSON.parse(new TextDecoder().decode(await this.bytes(id)));
  }
}

// Reads columns one after the other. Numbers are below 2^53: they are put together with products,
// as shifts would cut them at 32 bits.
class ColumnReader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  number() {
    const bytes = this.bytes;
    let byte = bytes[this.at++];
    if (byte < 128) return byte;
    let value = byte & 127;
    let scale = 128;
    do {
      byte = bytes[this.at++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte >= 128);
    return value;
  }

  whole(values) {
    if (this.at > this.bytes.length) throw new Error('its data end too early');
    return values;
  }

  // Type is that of the array: Uint32Array for events and counts, Float64Array for bytes.
  plain(count, Type) {
    const values = new Type(count);
    for (let i = 0; i < count; i++) values[i] = this.number();
    return this.whole(values);
  }

  steps(count, Type) {
    const values = new Type(count);
    let last = 0;
    for (let i = 0; i < count; i++) {
      const step = this.number();
      last += step % 2 === 0 ? step / 2 : -(step + 1) / 2;
      values[i] = last;
    }
    return this.whole(values);
  }
}
