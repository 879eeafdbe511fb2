'use strict';
// N146: base64 waits for three bytes; the other encodings for none.
const { log } = require('./_lib');
const { Readable } = require('stream');
for (const encoding of ['hex', 'base64', 'base64url', 'latin1', 'ascii', 'utf16le']) {
  const r = new Readable({ read() {} });
  r.setEncoding(encoding);
  r.on('data', (d) => log(encoding + '-' + d));
  r.on('end', () => log(encoding + '-end'));
  for (const b of [[0xff, 0xfb], [0x41], [0x04], [0x3d, 0xd8], [0x00, 0xde], [0x42]]) r.push(Buffer.from(b));
  r.push(null);
}
let error;
try { new Readable({ read() {} }).setEncoding('utf7'); } catch (e) { error = e; }
log(error.code + '-' + error.message);
