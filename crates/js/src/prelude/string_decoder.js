// `string_decoder`.
(function (natives, internal) {
  'use strict';
  const { Buffer } = internal.builtin('buffer');
  class StringDecoder {
    #write;
    #end;
    constructor(encoding = 'utf8') {
      const name = encoding === null ? 'utf8' : natives.encodingName(`${encoding}`);
      if (name === undefined) throw internal.coded(TypeError, 'ERR_UNKNOWN_ENCODING', `Unknown encoding: ${encoding}`);
      this.encoding = name;
      [this.#write, this.#end] = natives.decoder(name);
    }
    write(chunk) {
      if (typeof chunk === 'string') return chunk;
      if (!ArrayBuffer.isView(chunk)) throw internal.invalidType('buf', ['Buffer', 'TypedArray', 'DataView'], chunk);
      return this.#write(Buffer.isBuffer(chunk) ? chunk : internal.dataOf(chunk, 'buf'));
    }
    end(chunk) { return (chunk === undefined ? '' : this.write(chunk)) + this.#end(); }
  }
  return { StringDecoder };
})
