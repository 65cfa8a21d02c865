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

// The data elements of a page: of this one, or of another report that was read from a file.
class PageData {
  constructor(root) {
    this.root = root;
    this.facts = JSON.parse(root.getElementById('data').textContent);
  }

  // Each element is read once: its text is given back to the browser.
  async bytes(id) {
    const element = this.root.getElementById(id);
    const text = element.textContent;
    element.textContent = '';
    return gunzip(bytesOfBase64(text));
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
