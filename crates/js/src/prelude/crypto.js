// `crypto`: random values. The system makes them.
(function (natives, internal) {
  'use strict';
  const { hide, invalidType, needFunction, outOfRange } = internal;
  const sizeOf = (size, name, most) => {
    if (typeof size !== 'number') throw invalidType(name, 'number', size);
    if (Number.isNaN(size) || size < 0 || size > most) throw outOfRange(name, `>= 0 && <= ${most}`, size);
    return size >>> 0;
  };
  const filled = (view, start, size) => new Uint8Array(view.buffer ?? view, (view.byteOffset ?? 0) + start, size).set(natives.random(size));
  const crypto = {
    randomBytes(size, callback) {
      sizeOf(size, 'size', 2147483647);
      if (callback !== undefined) needFunction(callback, 'callback');
      // It would be a job of the pool.
      if (callback !== undefined) throw internal.notImplemented('A callback of crypto.randomBytes()');
      return internal.asBuffer(natives.random(size));
    },
    randomFillSync(view, offset = 0, size = view?.byteLength - offset) {
      if (!ArrayBuffer.isView(view) && !(view instanceof ArrayBuffer)) throw invalidType('buf', ['ArrayBuffer', 'ArrayBufferView'], view);
      filled(view, sizeOf(offset, 'offset', view.byteLength), sizeOf(size, 'size', view.byteLength - offset));
      return view;
    },
    randomUUID(options) {
      if (options !== undefined) internal.needObject(options, 'options');
      const bytes = natives.random(16);
      bytes[6] = (bytes[6] & 0x0f) | 0x40;
      bytes[8] = (bytes[8] & 0x3f) | 0x80;
      return natives.decode(bytes, 'hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    },
    getRandomValues(view) {
      if (!ArrayBuffer.isView(view) || view instanceof DataView || /Float/.test(view[Symbol.toStringTag])) throw invalidType('data', 'Integer TypedArray', view);
      if (view.byteLength > 65536) {
        const error = new Error('The requested length exceeds 65,536 bytes');
        hide(error, 'name', 'QuotaExceededError');
        hide(error, 'code', 22);
        throw error;
      }
      filled(view, 0, view.byteLength);
      return view;
    },
  };
  const { getRandomValues, randomUUID } = crypto;
  crypto.webcrypto = { getRandomValues, randomUUID };
  return crypto;
})
