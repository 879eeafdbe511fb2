'use strict';
// N152: the rejection of an async listener is an error of its emitter, on a tick.
const { log } = require('./_lib');
const EventEmitter = require('events');

process.on('unhandledRejection', (e) => log('unhandled ' + e.message));
const listen = (e, name) => {
  e.on('work', async (n) => {
    log(`${name} start ${n}`);
    if (n === 2) throw new Error(`${name} at once`);
    await null;
    log(`${name} later ${n}`);
    if (n === 3) throw new Error(`${name} later`);
  });
};
const captures = new EventEmitter({ captureRejections: true });
captures.on('error', (e) => { log('error ' + e.message); process.nextTick(() => log('tick')); });
listen(captures, 'captures');
const plain = new EventEmitter();
plain.on('error', (e) => log('never ' + e.message));
listen(plain, 'plain');
for (const n of [1, 2, 3]) {
  setImmediate(() => {
    captures.emit('work', n);
    plain.emit('work', n);
    process.nextTick(() => log('own tick ' + n));
    queueMicrotask(() => log('own microtask ' + n));
  });
}
