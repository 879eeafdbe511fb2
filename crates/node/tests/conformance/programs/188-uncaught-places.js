'use strict';
// N70-N76: throws of several places in one program, with a listener.
const { log, fsOp } = require('./_lib');
process.on('uncaughtException', (e) => { log('caught-' + e.message); process.nextTick(() => log('tick-' + e.message)); });
setImmediate(() => { process.nextTick(() => log('i1.tick')); throw new Error('i1'); });
setImmediate(() => { log('i2'); Promise.resolve().then(() => { log('i2.m'); }); });
setTimeout(() => { queueMicrotask(() => { throw new Error('m'); }); queueMicrotask(() => log('m2')); process.nextTick(() => { throw new Error('t'); }); process.nextTick(() => log('t2')); }, 20);
setTimeout(() => log('timer2'), 20);
fsOp(() => { process.nextTick(() => log('fs.tick')); throw new Error('fs'); });
