// `zlib`: the shape of its functions and streams. Packing is Rust's.
(function (natives, internal) {
  'use strict';
  const { hide, invalidType, needFunction, outOfRange } = internal;
  const { Transform } = internal.builtin('stream');
  const constants = {
    Z_NO_FLUSH: 0, Z_PARTIAL_FLUSH: 1, Z_SYNC_FLUSH: 2, Z_FULL_FLUSH: 3, Z_FINISH: 4, Z_BLOCK: 5,
    Z_OK: 0, Z_STREAM_END: 1, Z_NEED_DICT: 2, Z_ERRNO: -1, Z_STREAM_ERROR: -2, Z_DATA_ERROR: -3, Z_MEM_ERROR: -4, Z_BUF_ERROR: -5, Z_VERSION_ERROR: -6,
    Z_NO_COMPRESSION: 0, Z_BEST_SPEED: 1, Z_BEST_COMPRESSION: 9, Z_DEFAULT_COMPRESSION: -1,
    Z_FILTERED: 1, Z_HUFFMAN_ONLY: 2, Z_RLE: 3, Z_FIXED: 4, Z_DEFAULT_STRATEGY: 0,
    Z_MIN_WINDOWBITS: 8, Z_MAX_WINDOWBITS: 15, Z_DEFAULT_WINDOWBITS: 15, Z_MIN_CHUNK: 64, Z_MAX_CHUNK: Infinity, Z_DEFAULT_CHUNK: 16384,
    Z_MIN_MEMLEVEL: 1, Z_MAX_MEMLEVEL: 9, Z_DEFAULT_MEMLEVEL: 8, Z_MIN_LEVEL: -1, Z_MAX_LEVEL: 9, Z_DEFAULT_LEVEL: -1,
  };
  // The ranges, and what is refused here. Rust refuses the rest: some ranges depend on the format.
  const limits = {
    flush: [0, 5, 0, 5], finishFlush: [0, 5, 0, 5], strategy: [0, 4, 0, 4], windowBits: [8, 15, 0, 255], memLevel: [1, 9, 0, 255], level: [-1, 9, -1e9, 1e9],
    chunkSize: [64, undefined, 0, Number.MAX_VALUE], maxOutputLength: [1, Number.MAX_SAFE_INTEGER, 0, Number.MAX_SAFE_INTEGER],
  };
  const optionsOf = (given) => {
    if (given === undefined || given === null) return {};
    const options = { highWaterMark: given.highWaterMark, rejectGarbageAfterEnd: given.rejectGarbageAfterEnd };
    for (const name of Object.keys(limits)) {
      const value = given[name];
      if (value === undefined || Number.isNaN(value)) continue;
      if (typeof value !== 'number') throw invalidType(`options.${name}`, 'number', value);
      if (!Number.isFinite(value)) throw outOfRange(`options.${name}`, 'a finite number', value);
      const [least, most, low, high] = limits[name];
      if (value < low || value > high) throw outOfRange(`options.${name}`, `>= ${least}${most === undefined ? '' : ` and <= ${most}`}`, value);
      options[name] = value;
    }
    if (given.dictionary !== undefined) {
      if (!ArrayBuffer.isView(given.dictionary) && !(given.dictionary instanceof ArrayBuffer)) {
        throw invalidType('options.dictionary', ['Buffer', 'TypedArray', 'DataView', 'ArrayBuffer'], given.dictionary);
      }
      options.dictionary = bytesOf(given.dictionary);
    }
    return options;
  };
  const bytesOf = (data, names = ['string', 'Buffer', 'TypedArray', 'DataView', 'ArrayBuffer'], name = 'buffer') => {
    if (typeof data === 'string') return natives.encode(data);
    if (data instanceof ArrayBuffer) return new Uint8Array(data);
    if (!ArrayBuffer.isView(data)) throw invalidType(name, names, data);
    return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  };

  const more = new WeakMap();
  const methods = {
    flush(kind, callback) {
      if (typeof kind === 'function' || (kind === undefined && callback === undefined)) [kind, callback] = [constants.Z_FULL_FLUSH, kind];
      more.get(this)('flush', kind, callback ?? (() => {}));
    },
    close(callback) {
      if (callback) internal.builtin('stream').finished(this, callback);
      this.destroy();
    },
    params() { throw internal.notImplemented('zlib.params()'); },
    reset() { throw internal.notImplemented('zlib.reset()'); },
  };
  const zlib = { constants, codes: Object.freeze({ Z_OK: 0, Z_STREAM_END: 1, Z_NEED_DICT: 2, Z_ERRNO: -1, Z_STREAM_ERROR: -2, Z_DATA_ERROR: -3, Z_MEM_ERROR: -4, Z_BUF_ERROR: -5, Z_VERSION_ERROR: -6 }) };
  for (const kind of ['Deflate', 'Inflate', 'Gzip', 'Gunzip', 'DeflateRaw', 'InflateRaw', 'Unzip', 'BrotliDecompress']) {
    const name = kind[0].toLowerCase() + kind.slice(1);
    const Class = { [kind]: function (options) {
      const checked = optionsOf(options);
      return internal.wrapStream(Class, (object) => {
        const [native, others] = natives.zlibStream(object, kind, checked);
        more.set(object, others);
        return native;
      });
    } }[kind];
    Object.setPrototypeOf(Class, Transform);
    Class.prototype = Object.create(Transform.prototype, { constructor: { value: Class, writable: true, configurable: true } });
    for (const key of Object.keys(methods)) hide(Class.prototype, key, methods[key]);
    Object.defineProperty(Class.prototype, 'bytesWritten', { get() { return more.get(this)('bytesWritten'); }, configurable: true });
    zlib[kind] = Class;
    zlib[`create${kind}`] = { [`create${kind}`]: (options) => new Class(options) }[`create${kind}`];
    zlib[name] = { [name](data, options, callback) {
      if (typeof options === 'function') [options, callback] = [undefined, options];
      needFunction(callback, 'callback');
      natives.zlib(kind, bytesOf(data), optionsOf(options), (error, bytes) => (error ? callback(error) : callback(null, internal.asBuffer(bytes))));
    } }[name];
    zlib[`${name}Sync`] = { [`${name}Sync`]: (data, options) => internal.asBuffer(natives.zlibSync(kind, bytesOf(data), optionsOf(options))) }[`${name}Sync`];
  }
  zlib.crc32 = (data, value = 0) => {
    const bytes = bytesOf(data, ['string', 'Buffer', 'TypedArray', 'DataView'], 'data');
    if (typeof value !== 'number') throw invalidType('value', 'number', value);
    if (!Number.isInteger(value)) throw outOfRange('value', 'an integer', value);
    if (value < 0 || value > 4294967295) throw outOfRange('value', '>= 0 && <= 4294967295', value);
    return natives.crc32(bytes, value);
  };
  return zlib;
})
