'use strict';
// A duplex stream of two halves: data both ways, its end, an error of a half, destruction.
const { log } = require('./_lib');
const { Duplex, Readable, Writable } = require('stream');
const watch = (name, s) => { for (const e of ['end', 'finish', 'close', 'drain']) s.on(e, () => log(name + '.' + e)); s.on('error', (e) => log(name + '.' + e.name + '-' + e.message)); };
const sink = (name) => new Writable({ objectMode: true, highWaterMark: 2, write(x, _, cb) { log(name + '-' + x); setImmediate(cb); }, final(cb) { log(name + '.final'); cb(); } });
const r = Readable.from(['a', 'b']);
const w = sink('w');
const d = Duplex.from({ readable: r, writable: w });
watch('r', r); watch('w', w); watch('d', d);
d.on('data', (x) => log('data-' + x));
log('write-' + d.write(1)); log('write-' + d.write(2)); d.write(3);
d.end(() => log('end.cb'));
process.nextTick(() => log('tick'));
setTimeout(() => {
  const r2 = new Readable({ objectMode: true, read() {} });
  const w2 = sink('w2');
  const d2 = Duplex.from({ readable: r2, writable: w2 });
  watch('r2', r2); watch('w2', w2); watch('d2', d2);
  r2.push('x');
  d2.on('data', (x) => { log('d2-' + x); r2.destroy(new Error('torn')); });
}, 20);
setTimeout(() => {
  const r3 = new Readable({ objectMode: true, read() {} });
  const w3 = sink('w3');
  const d3 = Duplex.from({ readable: r3, writable: w3 });
  watch('r3', r3); watch('w3', w3); watch('d3', d3);
  d3.destroy();
  log('destroyed-' + r3.destroyed + '-' + w3.destroyed);
}, 40);
setTimeout(() => {
  const r4 = new Readable({ objectMode: true, read() {} });
  const w4 = sink('w4');
  const d4 = Duplex.from({ readable: r4, writable: w4 });
  watch('r4', r4); watch('w4', w4); watch('d4', d4);
  d4.write(1);
  w4.destroy(new Error('full'));
}, 60);
