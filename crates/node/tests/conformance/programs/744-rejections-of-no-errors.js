'use strict';
// N23: a rejection with what is no error is wrapped if nobody handles it.
const { log } = require('./_lib');
const show = (what) => (e, origin) => log(`${what} ${e.name} ${e.code ?? null} ${e.message} ${origin}`);
process.on('uncaughtExceptionMonitor', show('monitor'));
const listener = show('uncaught');
process.on('uncaughtException', listener);
Promise.reject('text');
Promise.reject(42);
Promise.reject(null);
Promise.reject('two\nlines "quoted"');
Promise.reject(new RangeError('range'));
(async () => { throw 'thrown'; })();
Promise.reject('caught').catch((e) => log('caught ' + e));
Promise.reject('passed on').finally(() => log('finally'));
setImmediate(() => {
  process.once('unhandledRejection', (reason) => log(`unhandled ${reason} ${reason.code ?? null}`));
  Promise.reject('heard');
  setImmediate(() => {
    process.on('exit', (code) => log('exit ' + code));
    process.exitCode = 0;
  });
});
