'use strict';
// N81 N82: beforeExit revives the loop by a timer, then by a promise that does nothing; exit may set the code.
const { log } = require('./_lib');
let count = 0;
process.on('beforeExit', (code) => {
  log('before-' + code + '-' + ++count);
  if (count === 1) setTimeout(() => { log('revived'); process.exitCode = 3; }, 1);
  if (count === 2) Promise.resolve().then(() => log('micro')).then(() => process.nextTick(() => log('tick')));
});
process.on('beforeExit', () => log('second'));
process.on('exit', (code) => { log('exit-' + code); process.exitCode = 0; });
process.on('exit', (code) => { log('exit2-' + code + '-' + process.exitCode); setImmediate(() => log('no')); });
