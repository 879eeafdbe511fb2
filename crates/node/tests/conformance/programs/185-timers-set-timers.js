'use strict';
// N43 N34 N47: timers of one millisecond that set each other, with immediates.
const { log, block } = require('./_lib');
setTimeout(() => { log('t1'); setTimeout(() => log('t1.1'), 0); setImmediate(() => log('i1')); block(5); Promise.resolve().then(() => { setTimeout(() => log('t1.m'), 1); log('m1'); }); }, 1);
setTimeout(() => { log('t2'); setImmediate(() => { log('i2'); setTimeout(() => log('i2.t'), 1); block(5); setImmediate(() => log('i2.i')); }); }, 1);
setTimeout(() => { log('t3'); process.nextTick(() => log('t3.tick')); }, 2);
block(10);
