'use strict';
// O3 O4 O6: immediates inside immediates; what one enters, the next does not see.
const { log, block } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
als.run('a', () => setImmediate(() => { at('one'); als.enterWith('x'); setImmediate(() => at('inner-one')); process.nextTick(() => at('tick-one')); Promise.resolve().then(() => at('then-one')); }));
setImmediate(() => { at('two'); als.run('y', () => setImmediate(() => { at('inner-two'); als.exit(() => setImmediate(() => at('exited'))); })); });
als.run('b', () => { const i = setImmediate(() => at('never')); als.run('c', () => setImmediate(() => { at('three'); })); clearImmediate(i); });
als.enterWith('main');
setImmediate(() => { at('four'); queueMicrotask(() => { at('micro'); als.enterWith('m'); queueMicrotask(() => at('micro-micro')); }); process.nextTick(() => at('tick-four')); });
process.nextTick(() => { at('tick'); als.enterWith('t'); process.nextTick(() => at('tick-tick')); queueMicrotask(() => at('micro-of-tick')); });
process.nextTick(() => at('next-tick'));
queueMicrotask(() => { at('micro-main'); als.enterWith('mm'); });
queueMicrotask(() => at('micro-main-2'));
setImmediate((a, b) => at('args-' + a + b), 1, 2);
