'use strict';
// N146: after setEncoding a chunk that completes no character emits nothing; the end emits what is left.
const { log } = require('./_lib');
const { Readable } = require('stream');
const r = new Readable({ read() {} });
r.setEncoding('utf8');
log('encoding-' + r.readableEncoding);
r.on('data', (d) => { log('data-' + d); process.nextTick(() => log('tick-' + d)); });
r.on('end', () => log('end'));
r.on('close', () => log('close'));
setImmediate(() => {
  r.push(Buffer.from([0x61, 0xe2]));
  log('pushed');
  r.push(Buffer.from([0x82]));
  r.push(Buffer.from([0xac, 0x62]));
  process.nextTick(() => log('tick'));
  setImmediate(() => {
    r.push(Buffer.from([0xf0, 0x9f]));
    r.push(null);
    log('ended');
  });
});
