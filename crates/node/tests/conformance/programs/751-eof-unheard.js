'use strict';
// N141: EOF that nobody listens for is announced to a listener that comes later.
const { log } = require('./_lib');
const { Readable } = require('stream');
const r = new Readable({ read() { this.push(null); } });
r.on('end', () => log('end'));
r.read(0);
process.nextTick(() => process.nextTick(() => {
  log('listens');
  r.on('readable', () => log('readable-' + r.read()));
  process.nextTick(() => log('tick'));
}));
