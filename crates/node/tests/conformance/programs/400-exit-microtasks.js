'use strict';
// N82: at a natural end the microtasks of the exit listeners run, and those that they queue; ticks and immediates do not.
const { log } = require('./_lib');
process.on('exit', (code) => {
  log('exit1-' + code);
  process.nextTick(() => log('tick'));
  setImmediate(() => log('immediate'));
  queueMicrotask(() => log('micro'));
  Promise.resolve().then(() => {
    log('then');
    process.nextTick(() => log('tick2'));
    queueMicrotask(() => { log('micro2'); throw new Error('late'); });
    queueMicrotask(() => log('micro3'));
  });
});
process.on('exit', () => log('exit2'));
process.on('uncaughtException', (e) => log('uncaught-' + e.message));
process.on('unhandledRejection', (e) => log('unhandled-' + e.message));
process.on('exit', () => { Promise.reject(new Error('rejected')); });
setTimeout(() => log('timeout'), 1);
