// `stream/consumers`.
(function (natives, internal) {
  'use strict';
  const { Buffer } = internal.builtin('buffer');
  const { StringDecoder } = internal.builtin('string_decoder');
  const buffer = async (stream) => {
    const chunks = [];
    for await (const chunk of stream) chunks.push(typeof chunk === 'string' ? Buffer.from(chunk) : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    return Buffer.concat(chunks);
  };
  const text = async (stream) => {
    const decoder = new StringDecoder('utf8');
    let all = '';
    for await (const chunk of stream) all += typeof chunk === 'string' ? chunk : decoder.write(chunk);
    return (all + decoder.end()).replace(/^\uFEFF/, '');
  };
  const arrayBuffer = async (stream) => {
    const all = await buffer(stream);
    return all.buffer.slice(all.byteOffset, all.byteOffset + all.byteLength);
  };
  const bytes = async (stream) => new Uint8Array(await arrayBuffer(stream));
  const json = async (stream) => JSON.parse(await text(stream));
  return { buffer, text, arrayBuffer, bytes, json };
})
