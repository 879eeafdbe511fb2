'use strict';
// Records what Node's StringDecoder makes of random chunks:   node record.js > recorded.txt
// One line each: the encoding, the chunks in hex, the text after each chunk and at the end as UTF-8 in hex.
const { StringDecoder } = require('string_decoder');
let seed = 7;
const random = (n) => { seed = (seed * 1103515245 + 12345) & 0x7fffffff; return (seed >> 8) % n; };
const hex = (x) => Buffer.from(x).toString('hex');
// Whole, cut and impossible characters.
const pieces = [[0x61], [0xc3, 0xa9], [0xe2, 0x82, 0xac], [0xf0, 0x9f, 0x98, 0x80], [0x80], [0xe2, 0x82], [0xff],
  [0xf0, 0x9f], [0xc0], [0xed, 0xa0, 0x80], [0xf8, 0x88], [0x3d, 0xd8], [0x00, 0xde], [0xd8, 0x3d], [0xf5, 0x80]];
const encodings = ['utf8', 'utf16le', 'latin1', 'ascii', 'hex', 'base64', 'base64url', 'utf8', 'utf8'];
const isCutPair = (text) => /[\ud800-\udbff]$/.test(text);
for (let written = 0; written < 400;) {
  const encoding = encodings[random(encodings.length)];
  const decoder = new StringDecoder(encoding);
  const bytes = [], chunks = [], texts = [];
  for (let i = random(9) + 1; i > 0; i--) bytes.push(...pieces[random(pieces.length)]);
  while (bytes.length) {
    const chunk = Buffer.from(bytes.splice(0, random(4) + 1));
    chunks.push(chunk);
    texts.push(decoder.write(chunk));
  }
  // Node can end a text with half a pair; text in Rust cannot, so it waits there.
  if (texts.some(isCutPair)) continue;
  texts.push(decoder.end());
  console.log(encoding, chunks.map(hex).join(','), texts.map(hex).join(','));
  written++;
}
