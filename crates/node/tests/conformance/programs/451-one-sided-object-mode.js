'use strict';
// N148: object mode on one side only, with a mark for each.
const { log } = require('./_lib');
const { Transform } = require('stream');
const lines = new Transform({
  readableObjectMode: true, readableHighWaterMark: 3, writableHighWaterMark: 5,
  transform(chunk, _, done) { for (const line of String(chunk).split(',')) this.push({ line }); done(); },
});
log('marks-' + lines.readableHighWaterMark + '-' + lines.writableHighWaterMark);
log('write-' + lines.write('a,b') + '-' + lines.writableLength + '-' + lines.readableLength);
log('write-' + lines.write('c,d') + '-' + lines.writableLength + '-' + lines.readableLength);
log('write-' + lines.write('e,f') + '-' + lines.writableLength + '-' + lines.readableLength);
lines.on('data', ({ line }) => log('line-' + line));
lines.on('drain', () => log('drain'));
lines.on('end', () => log('end'));
lines.end();
const bytes = new Transform({ writableObjectMode: true, transform(n, _, done) { done(null, Buffer.alloc(n, 'x')); } });
log('marks-' + bytes.readableHighWaterMark + '-' + bytes.writableHighWaterMark);
bytes.write(3);
bytes.write(4);
log('kept-' + bytes.readableLength);
setImmediate(() => { log('read-' + bytes.read()); });
