'use strict';
// N119 N124: a signal of several tells its listeners inside the abort, after those of its source.
const { log } = require('./_lib');
const [a, b] = [new AbortController(), new AbortController()];
const any = AbortSignal.any([a.signal, b.signal]);
const both = AbortSignal.any([any, AbortSignal.timeout(1000)]);
any.addEventListener('abort', () => { log('any'); process.nextTick(() => log('any.tick')); });
both.addEventListener('abort', () => { log('both'); queueMicrotask(() => log('both.micro')); });
b.signal.addEventListener('abort', () => log('b'));
a.signal.addEventListener('abort', () => log('a'));
setImmediate(() => {
  b.abort(new Error('why'));
  log('aborted-' + any.reason.message + '-' + both.reason.message + '-' + a.signal.aborted);
  a.abort();
  log('again');
  log(AbortSignal.any([a.signal, b.signal]).reason.name);
});
