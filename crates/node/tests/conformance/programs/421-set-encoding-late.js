'use strict';
// N146: setEncoding decodes what is kept; sizes are counted in UTF-16 units from then on.
const { log } = require('./_lib');
const { Readable } = require('stream');
const r = new Readable({ read() {}, highWaterMark: 8 });
log(String(r.push(Buffer.from('€uro ', 'utf8'))));
log('kept-' + r.readableLength);
r.setEncoding('utf8');
log('kept-' + r.readableLength);
log(String(r.push(Buffer.from('😀', 'utf8'))));
log('kept-' + r.readableLength);
log('read-' + r.read(2));
log('kept-' + r.readableLength);
r.on('readable', () => {
  let d;
  log('readable');
  while ((d = r.read()) !== null) log('chunk-' + d);
});
r.on('end', () => log('end'));
r.push(Buffer.from([0xc3]));
setImmediate(() => { log('kept-' + r.readableLength); r.push(Buffer.from([0xa9])); r.push(null); });
