// `buffer`: bytes with Node's methods. A `Buffer` is a `Uint8Array`.
(function (natives, internal) {
  'use strict';
  const { apply, coded, invalidType, hide } = internal;
  const { setPrototypeOf } = Object;
  const inspect = Symbol.for('nodejs.util.inspect.custom');

  const nameOf = (encoding) => {
    if (encoding === undefined || encoding === null || encoding === '') return 'utf8';
    const name = typeof encoding === 'string' ? natives.encodingName(encoding) : undefined;
    if (name === undefined) throw coded(TypeError, 'ERR_UNKNOWN_ENCODING', `Unknown encoding: ${encoding}`);
    return name;
  };
  const asBuffer = (bytes) => setPrototypeOf(bytes, Buffer.prototype);
  internal.asBuffer = asBuffer;
  internal.encode = (text, encoding) => asBuffer(natives.encodeWith(text, nameOf(encoding)));
  const isBytes = (value) => value instanceof Uint8Array;
  const needBytes = (value, name) => {
    if (!isBytes(value)) throw invalidType(name, ['Buffer', 'Uint8Array'], value);
  };
  const needSize = (size) => {
    if (typeof size !== 'number') throw invalidType('size', 'number', size);
    if (!(size >= 0 && size <= 2 ** 53 - 1)) throw internal.outOfRange('size', `>= 0 && <= ${2 ** 53 - 1}`, size);
  };
  const view = (it) => new DataView(it.buffer, it.byteOffset, it.byteLength);

  // A class cannot be called without `new`; Node's can.
  function Buffer(value, encodingOrOffset, length) {
    return typeof value === 'number' ? Buffer.alloc(value) : Buffer.from(value, encodingOrOffset, length);
  }
  setPrototypeOf(Buffer, Uint8Array);
  Buffer.prototype = Object.create(Uint8Array.prototype, { constructor: { value: Buffer, writable: true, configurable: true } });
  const proto = Buffer.prototype;

  Buffer.poolSize = 8192;
  Buffer.from = (value, encodingOrOffset, length) => {
    if (typeof value === 'string') return internal.encode(value, encodingOrOffset);
    if (value !== null && typeof value === 'object') {
      if (value instanceof ArrayBuffer || (typeof SharedArrayBuffer !== 'undefined' && value instanceof SharedArrayBuffer)) {
        return asBuffer(new Uint8Array(value, encodingOrOffset, length));
      }
      if (ArrayBuffer.isView(value) && value instanceof DataView) return asBuffer(new Uint8Array(0));
      if (isBytes(value) || Array.isArray(value) || typeof value.length === 'number') return asBuffer(Uint8Array.from(value));
      if (value.type === 'Buffer' && Array.isArray(value.data)) return asBuffer(Uint8Array.from(value.data));
      const inner = value.valueOf?.();
      if (inner != null && inner !== value && (typeof inner === 'string' || typeof inner === 'object')) return Buffer.from(inner, encodingOrOffset, length);
      const plain = value[Symbol.toPrimitive]?.('string');
      if (typeof plain === 'string') return Buffer.from(plain, encodingOrOffset);
    }
    throw invalidType('first argument', ['string', 'Buffer', 'ArrayBuffer', 'Array', 'Array-like Object'], value);
  };
  Buffer.alloc = (size, fill, encoding) => {
    needSize(size);
    const made = asBuffer(new Uint8Array(size));
    return fill === undefined || fill === 0 ? made : made.fill(fill, encoding);
  };
  Buffer.allocUnsafe = Buffer.allocUnsafeSlow = (size) => { needSize(size); return asBuffer(new Uint8Array(size)); };
  Buffer.isBuffer = (value) => value instanceof Buffer;
  Buffer.isEncoding = (name) => typeof name === 'string' && name !== '' && natives.isEncoding(name);
  Buffer.byteLength = (value, encoding) => {
    if (typeof value === 'string') return natives.encodeWith(value, natives.isEncoding(`${encoding}`) ? encoding : 'utf8').length;
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return value.byteLength;
    throw invalidType('string', ['string', 'Buffer', 'ArrayBuffer'], value);
  };
  Buffer.concat = (list, length) => {
    if (!Array.isArray(list)) throw invalidType('list', 'Array', list);
    const total = length ?? list.reduce((sum, it) => sum + it.length, 0);
    const made = Buffer.alloc(total);
    let at = 0;
    list.forEach((it, index) => {
      needBytes(it, `list[${index}]`);
      if (at >= total) return;
      const part = it.length > total - at ? it.subarray(0, total - at) : it;
      made.set(part, at);
      at += part.length;
    });
    return made;
  };
  Buffer.compare = (a, b) => {
    needBytes(a, 'buf1');
    needBytes(b, 'buf2');
    const common = Math.min(a.length, b.length);
    for (let i = 0; i < common; i++) if (a[i] !== b[i]) return a[i] < b[i] ? -1 : 1;
    return Math.sign(a.length - b.length);
  };

  const methods = {
    toString(encoding, start = 0, end = this.length) {
      const from = Math.max(0, Math.trunc(start) || 0);
      const to = Math.min(this.length, Math.trunc(end) || 0);
      const name = nameOf(encoding);
      return to <= from ? '' : natives.decode(from === 0 && to === this.length ? this : this.subarray(from, to), name);
    },
    toJSON() { return { type: 'Buffer', data: [...this] }; },
    equals(other) { needBytes(other, 'otherBuffer'); return this === other || Buffer.compare(this, other) === 0; },
    compare(target, a = 0, b = target.length, c = 0, d = this.length) {
      needBytes(target, 'target');
      return Buffer.compare(this.subarray(c, d), target.subarray(a, b));
    },
    copy(target, at = 0, start = 0, end = this.length) {
      needBytes(target, 'target');
      const part = this.subarray(start, Math.min(end, start + Math.max(0, target.length - at)));
      target.set(part, at);
      return part.length;
    },
    slice(start, end) { return this.subarray(start, end); },
    write(text, offset, length, encoding) {
      if (typeof text !== 'string') throw invalidType('argument', 'string', text);
      if (typeof offset === 'string') [offset, encoding] = [0, offset];
      else if (typeof length === 'string') [length, encoding] = [undefined, length];
      const at = offset ?? 0;
      const bytes = natives.encodeWith(text, nameOf(encoding));
      const size = Math.min(bytes.length, length ?? Infinity, this.length - at);
      this.set(bytes.subarray(0, size), at);
      return size;
    },
    fill(value, start, end, encoding) {
      if (typeof start === 'string') [start, encoding] = [undefined, start];
      else if (typeof end === 'string') [end, encoding] = [undefined, end];
      const bytes = typeof value === 'string' ? natives.encodeWith(value, nameOf(encoding)) : isBytes(value) ? value : [value & 255];
      const [from, to] = [start ?? 0, end ?? this.length];
      if (bytes.length === 0 || to <= from) return this;
      if (bytes.length === 1) return apply(Uint8Array.prototype.fill, this, [bytes[0], from, to]);
      this.set(bytes.subarray(0, to - from), from);
      for (let done = bytes.length; done < to - from; done *= 2) this.copyWithin(from + done, from, Math.min(from + done, to - done));
      return this;
    },
    indexOf(value, offset = 0, encoding) {
      if (typeof offset === 'string') [offset, encoding] = [0, offset];
      const bytes = typeof value === 'number' ? [value & 255] : typeof value === 'string' ? natives.encodeWith(value, nameOf(encoding)) : value;
      for (let i = offset < 0 ? Math.max(0, this.length + offset) : offset; i + bytes.length <= this.length; i++) {
        let j = 0;
        while (j < bytes.length && this[i + j] === bytes[j]) j++;
        if (j === bytes.length) return i;
      }
      return -1;
    },
    includes(value, offset, encoding) { return this.indexOf(value, offset, encoding) !== -1; },
    [inspect]() {
      const shown = [...apply(Uint8Array.prototype.slice, this, [0, 50])].map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
      const more = this.length > 50 ? ` ... ${this.length - 50} more byte${this.length > 51 ? 's' : ''}` : '';
      return `<Buffer ${shown}${more}>`;
    },
  };
  for (const key of Reflect.ownKeys(methods)) hide(proto, key, methods[key]);
  hide(proto, 'toLocaleString', methods.toString);
  hide(proto, 'parent', undefined);
  // Numbers of fixed width, by the methods of `DataView`.
  const kinds = [['UInt8', 'Uint8', 1], ['Int8', 'Int8', 1], ['UInt16', 'Uint16', 2], ['Int16', 'Int16', 2], ['UInt32', 'Uint32', 4], ['Int32', 'Int32', 4],
    ['Float', 'Float32', 4], ['Double', 'Float64', 8], ['BigUInt64', 'BigUint64', 8], ['BigInt64', 'BigInt64', 8]];
  const needPlace = (it, offset, size) => {
    if (typeof offset !== 'number') throw invalidType('offset', 'number', offset);
    if (!Number.isInteger(offset)) throw internal.outOfRange('offset', 'an integer', offset);
    if (offset < 0 || offset + size > it.length) throw internal.outOfRange('offset', `>= 0 and <= ${it.length - size}`, offset);
  };
  for (const [name, kind, size] of kinds) {
    for (const [suffix, little] of size === 1 ? [['', true]] : [['LE', true], ['BE', false]]) {
      const read = function (offset = 0) { needPlace(this, offset, size); return view(this)[`get${kind}`](offset, little); };
      const write = function (value, offset = 0) { needPlace(this, offset, size); view(this)[`set${kind}`](offset, value, little); return offset + size; };
      for (const alias of new Set([name, name.replace('UInt', 'Uint')])) {
        hide(proto, `read${alias}${suffix}`, read);
        hide(proto, `write${alias}${suffix}`, write);
      }
    }
  }
  const isAscii = (value) => !internal.dataOf(value, 'input').some((byte) => byte > 127);
  return {
    Buffer, SlowBuffer: Buffer, kMaxLength: 2 ** 53 - 1, constants: { MAX_LENGTH: 2 ** 53 - 1, MAX_STRING_LENGTH: 2 ** 29 - 24 }, INSPECT_MAX_BYTES: 50, isAscii,
    atob: (text) => natives.decode(natives.encodeWith(`${text}`, 'base64'), 'latin1'),
    btoa: (text) => natives.decode(natives.encodeWith(`${text}`, 'latin1'), 'base64'),
  };
})
