'use strict';
// N154: what the functions of zlib return and refuse: members, padding, bytes behind the end, cuts, limits, dictionaries.
const { log } = require('./_lib');
const zlib = require('zlib');

const say = (name, work) => {
  try { log(`${name}: ${work()}`); } catch (e) { log(`${name}: ${e.name} ${e.code} ${e.message}`); }
};
const hex = (text) => Buffer.from(text, 'hex');
const one = hex('1f8b0800000000000003cb48cdc9c9070086a6103605000000'); // "hello"
const two = hex('1f8b08000000000000032bcf2fca4901004311773a05000000'); // "world"
const plain = hex('789ccb48cdc9c90700062c0215'); // "hello"
const join = (...parts) => Buffer.concat(parts.map((part) => Buffer.from(part)));

for (const [name, pack, unpack] of [
  ['gzip', zlib.gzipSync, zlib.gunzipSync], ['deflate', zlib.deflateSync, zlib.inflateSync],
  ['raw', zlib.deflateRawSync, zlib.inflateRawSync], ['unzip', zlib.gzipSync, zlib.unzipSync],
  ['unzip deflate', zlib.deflateSync, zlib.unzipSync],
]) {
  for (const size of [0, 1, 1000, 100000]) {
    const text = 'a line of text\n'.repeat(size / 10 + 1).slice(0, size);
    say(`${name} ${size}`, () => unpack(pack(text, { level: 9, windowBits: 10, memLevel: 1 })).toString() === text);
  }
}
say('gzip with window bits 0', () => zlib.gunzipSync(one, { windowBits: 0 }));
say('two members', () => zlib.gunzipSync(join(one, two)));
say('two members by unzip', () => zlib.unzipSync(join(one, two)));
say('padding', () => zlib.gunzipSync(join(one, Buffer.alloc(9))));
say('a member behind padding', () => zlib.gunzipSync(join(one, Buffer.alloc(9), two)));
say('rubbish behind', () => zlib.gunzipSync(join(one, 'rubbish and more')));
say('one byte behind', () => zlib.gunzipSync(join(one, 'r')));
say('half a header behind', () => zlib.gunzipSync(join(one, hex('1f8bffff'), Buffer.alloc(10))));
say('rubbish behind zlib', () => zlib.inflateSync(join(plain, 'rubbish')));
say('rubbish refused', () => zlib.inflateSync(join(plain, 'rubbish'), { rejectGarbageAfterEnd: true }));
say('padding refused', () => zlib.gunzipSync(join(one, Buffer.alloc(3)), { rejectGarbageAfterEnd: true }));
say('cut', () => zlib.gunzipSync(one.subarray(0, 15)));
say('cut, taken', () => zlib.gunzipSync(one.subarray(0, 15), { finishFlush: zlib.constants.Z_SYNC_FLUSH }));
say('nothing', () => zlib.inflateSync(''));
say('rubbish', () => zlib.gunzipSync(Buffer.from('rubbish')));
say('rubbish by inflate', () => zlib.inflateSync(Buffer.from('rubbish')));
say('rubbish by unzip', () => zlib.unzipSync(Buffer.from('rubbish')));
say('raw rubbish', () => zlib.inflateRawSync(hex('ffffffff')));
say('raw lengths', () => zlib.inflateRawSync(hex('0001020304')));
const sum = Buffer.from(one); sum[sum.length - 6] ^= 1;
say('wrong sum', () => zlib.gunzipSync(sum));
const length = Buffer.from(one); length[length.length - 2] ^= 1;
say('wrong length', () => zlib.gunzipSync(length));
const adler = Buffer.from(plain); adler[adler.length - 1] ^= 1;
say('wrong adler', () => zlib.inflateSync(adler));
say('large window', () => zlib.inflateSync(plain, { windowBits: 8 }));
say('limit', () => zlib.gunzipSync(one, { maxOutputLength: 4 }));
say('at the limit', () => zlib.gunzipSync(one, { maxOutputLength: 5 }));
const dictionary = Buffer.from('hello');
const known = zlib.deflateSync('hello hello', { dictionary });
say('dictionary', () => zlib.inflateSync(known, { dictionary }));
say('no dictionary', () => zlib.inflateSync(known));
say('another dictionary', () => zlib.inflateSync(known, { dictionary: Buffer.from('other') }));
say('raw dictionary', () => zlib.inflateRawSync(zlib.deflateRawSync('hello hello', { dictionary }), { dictionary }));
for (const options of [{ level: 10 }, { level: -2 }, { chunkSize: 63 }, { windowBits: 16 }, { windowBits: 8 }, { windowBits: 0 },
  { memLevel: 0 }, { maxOutputLength: 0 }]) {
  say(JSON.stringify(options), () => zlib.gzipSync('x', options));
}
say('deflate with 8 bits', () => zlib.inflateSync(zlib.deflateSync('x', { windowBits: 8 })));
say('raw with 8 bits', () => zlib.inflateRawSync(zlib.deflateRawSync('x', { windowBits: 8 })));
const brotli = hex('0b028068656c6c6f03');
say('brotli', () => zlib.brotliDecompressSync(brotli));
say('brotli, cut', () => zlib.brotliDecompressSync(brotli.subarray(0, 5)));
say('brotli, rubbish', () => zlib.brotliDecompressSync(Buffer.from('this is not brotli at all')));
say('brotli, rubbish behind', () => zlib.brotliDecompressSync(join(brotli, 'rubbish')));
say('crc32', () => `${zlib.crc32('hello')} ${zlib.crc32('lo', zlib.crc32('hel'))}`);
