'use strict';

// Columns of whole numbers, as report/columns.c prints them: base64 of gzip of varints.

async function inflate(id) {
  const element = document.getElementById(id);
  const text = atob(element.textContent);
  element.textContent = '';
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
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

  // Type is that of the array: Uint32Array for events and counts, Float64Array for bytes.
  plain(count, Type) {
    const values = new Type(count);
    for (let i = 0; i < count; i++) values[i] = this.number();
    return values;
  }

  steps(count, Type) {
    const values = new Type(count);
    let last = 0;
    for (let i = 0; i < count; i++) {
      const step = this.number();
      last += step % 2 === 0 ? step / 2 : -(step + 1) / 2;
      values[i] = last;
    }
    return values;
  }
}
