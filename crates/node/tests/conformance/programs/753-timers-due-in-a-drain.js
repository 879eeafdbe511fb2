'use strict';
// N47 N34: timers that become due while a pass or its drain runs wait for the next turn, behind immediates and close callbacks.
const { log, block } = require('./_lib');
setTimeout(() => {
  log('t1');
  setTimeout(() => log('t2'), 1);
  process.nextTick(() => { log('tick'); block(20); setTimeout(() => log('t3'), 1); block(20); });
  setImmediate(() => { log('immediate'); setImmediate(() => log('immediate2')); });
  block(20);
}, 1);
setTimeout(() => log('t4'), 2);
block(30);
