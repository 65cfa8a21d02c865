// Reads a pickle (protocols 2 to 5) of plain values: dictionaries, lists, tuples, strings, numbers. A
// pickle is a program; this reader knows only the steps that build such values, and refuses one that
// asks for a class or a function. Nothing of the file is ever run.

const PICKLE_LIMITS = { memo: 50000000, stack: 20000000 };

class PickleReader {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.text = new TextDecoder();
    this.at = 0;
    this.stack = [];
    this.marks = [];
    this.memo = [];
  }

  fail(what) {
    throw new Error(`at byte ${this.at}: ${what}`);
  }

  // The place before so many bytes.
  take(count) {
    const at = this.at;
    if (count < 0 || count > this.bytes.length - at) this.fail('the pickle ends too early; the file may be cut');
    this.at += count;
    return at;
  }

  string(count) {
    const at = this.take(count);
    return this.text.decode(this.bytes.subarray(at, at + count));
  }

  u32() {
    return this.view.getUint32(this.take(4), true);
  }

  u64() {
    const at = this.take(8);
    return this.view.getUint32(at, true) + this.view.getUint32(at + 4, true) * 4294967296;
  }

  // Little-endian, two's complement, of any length. Beyond 2^53 a number loses its lowest digits.
  long(count) {
    const at = this.take(count);
    let value = 0n;
    for (let i = count - 1; i >= 0; i--) value = value << 8n | BigInt(this.bytes[at + i]);
    if (count > 0 && this.bytes[at + count - 1] >= 128) value -= 1n << BigInt(8 * count);
    return Number(value);
  }

  // A count of bytes of a number: more than a snapshot's numbers have would only take time.
  smallCount(count) {
    if (count > 64) this.fail(`a number of ${count} bytes; a snapshot has none`);
    return count;
  }

  push(value) {
    if (this.stack.length >= PICKLE_LIMITS.stack) this.fail('it holds more values than a page can');
    this.stack.push(value);
  }

  pop() {
    if (this.stack.length <= (this.marks.length > 0 ? this.marks[this.marks.length - 1] : 0)) this.fail('a value is missing');
    return this.stack.pop();
  }

  top() {
    if (this.stack.length === 0) this.fail('a value is missing');
    return this.stack[this.stack.length - 1];
  }

  // Values since the last mark.
  popMarked() {
    if (this.marks.length === 0) this.fail('a mark is missing');
    return this.stack.splice(this.marks.pop());
  }

  put(index) {
    if (index > PICKLE_LIMITS.memo) this.fail('its memo is larger than a page can hold');
    this.memo[index] = this.top();
  }

  get(index) {
    if (!(index in this.memo)) this.fail(`it asks for value ${index}, which it has not stored`);
    this.push(this.memo[index]);
  }

  append(values) {
    const list = this.top();
    if (!Array.isArray(list)) this.fail('values are added to what is no list');
    for (const value of values) list.push(value);
  }

  setItems(values) {
    const items = this.top();
    if (!(items instanceof Map)) this.fail('items are set in what is no dictionary');
    if (values.length % 2 !== 0) this.fail('a key has no value');
    for (let i = 0; i < values.length; i += 2) items.set(values[i], values[i + 1]);
  }

  read() {
    for (;;) {
      const code = this.bytes[this.take(1)];
      if (code === 0x2e) break; // STOP
      const step = PICKLE_STEPS[code];
      if (step === undefined) this.refuse(code);
      step(this);
    }
    if (this.stack.length !== 1) this.fail('it does not end with one value');
    return this.stack[0];
  }

  refuse(code) {
    const asks = { c: 'a class', 0x93: 'a class', R: 'a function', i: 'a class', o: 'a class', b: 'an object', P: 'another file', Q: 'another file' };
    const what = asks[String.fromCharCode(code)] || asks[code];
    if (what !== undefined)
      this.fail(`the pickle asks for ${what}, which a snapshot does not need and this page does not run`);
    this.fail(`0x${code.toString(16)} is no step of a pickle that this page knows`);
  }
}

// By code: MARK, POP, constants, numbers, strings, bytes, tuples, lists, dictionaries, the memo, PROTO, FRAME.
const PICKLE_STEPS = {
  0x28: (r) => r.marks.push(r.stack.length),
  0x30: (r) => r.pop(),
  0x4e: (r) => r.push(null),
  0x88: (r) => r.push(true),
  0x89: (r) => r.push(false),
  0x4a: (r) => r.push(r.view.getInt32(r.take(4), true)),
  0x4b: (r) => r.push(r.bytes[r.take(1)]),
  0x4d: (r) => r.push(r.view.getUint16(r.take(2), true)),
  0x47: (r) => r.push(r.view.getFloat64(r.take(8), false)),
  0x8a: (r) => r.push(r.long(r.bytes[r.take(1)])),
  0x8b: (r) => r.push(r.long(r.smallCount(r.u32()))),
  0x8c: (r) => r.push(r.string(r.bytes[r.take(1)])),
  0x58: (r) => r.push(r.string(r.u32())),
  0x8d: (r) => r.push(r.string(r.u64())),
  0x43: (r) => r.push(r.string(r.bytes[r.take(1)])),
  0x42: (r) => r.push(r.string(r.u32())),
  0x8e: (r) => r.push(r.string(r.u64())),
  0x29: (r) => r.push([]),
  0x74: (r) => r.push(r.popMarked()),
  0x85: (r) => r.push([r.pop()]),
  0x86: (r) => r.push([r.pop(), r.pop()].reverse()),
  0x87: (r) => r.push([r.pop(), r.pop(), r.pop()].reverse()),
  0x5d: (r) => r.push([]),
  0x6c: (r) => r.push(r.popMarked()),
  0x61: (r) => {
    const value = r.pop();
    r.append([value]);
  },
  0x65: (r) => {
    const values = r.popMarked();
    r.append(values);
  },
  0x7d: (r) => r.push(new Map()),
  0x64: (r) => {
    const values = r.popMarked();
    r.push(new Map());
    r.setItems(values);
  },
  0x73: (r) => {
    const value = r.pop();
    r.setItems([r.pop(), value]);
  },
  0x75: (r) => {
    const values = r.popMarked();
    r.setItems(values);
  },
  0x71: (r) => r.put(r.bytes[r.take(1)]),
  0x72: (r) => r.put(r.u32()),
  0x94: (r) => r.put(r.memo.length),
  0x68: (r) => r.get(r.bytes[r.take(1)]),
  0x6a: (r) => r.get(r.u32()),
  0x80: (r) => {
    const version = r.bytes[r.take(1)];
    if (version > 5) r.fail(`it has protocol ${version}; 5 is the last that is known`);
  },
  0x95: (r) => r.take(8),
};
