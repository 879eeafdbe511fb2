'use strict';
// N84: listeners of the process that are called once, and those that only watch.
const { log } = require('./_lib');
let turns = 0;
process.once('beforeExit', (code) => { log('once.beforeExit-' + code); setImmediate(() => log('revived')); });
process.on('beforeExit', () => { log('beforeExit'); if (turns++ === 0) setImmediate(() => log('again')); });
process.once('exit', (code) => log('once.exit-' + code));
process.once('warning', (w) => log('warning-' + w.message));
process.emitWarning('one');
setImmediate(() => process.emitWarning('two'));
process.on('uncaughtExceptionMonitor', (e, origin) => log('monitor-' + e.message + '-' + origin));
process.once('uncaughtException', (e, origin) => {
  log('caught-' + e.message + '-' + origin);
  process.once('uncaughtException', (e) => log('caught second-' + e.message));
});
setImmediate(() => { throw new Error('thrown'); });
setImmediate(() => { Promise.reject(new Error('rejected')); });
process.once('SIGUSR2', () => log('signal'));
log('listeners-' + process.listenerCount('SIGUSR2'));
