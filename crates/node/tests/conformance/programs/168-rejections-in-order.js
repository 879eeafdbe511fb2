'use strict';
// N23: several unhandled rejections, one handled by a tick of the same drain, one by the report of another.
const { log } = require('./_lib');
process.on('unhandledRejection', (reason, promise) => {
  log('unhandled-' + reason.message);
  process.nextTick(() => log('tick-' + reason.message));
  if (reason.message === 'one') late.catch(() => log('caught-late'));
});
process.on('rejectionHandled', () => log('handled-late'));
Promise.reject(new Error('one'));
const late = Promise.reject(new Error('two'));
const intime = Promise.reject(new Error('three'));
process.nextTick(() => intime.catch((e) => log('in-time-' + e.message)));
setTimeout(() => { log('timer1'); Promise.reject(new Error('four')); }, 1);
setTimeout(() => log('timer2'), 1);
require('./_lib').block(10);
