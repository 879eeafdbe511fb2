'use strict';
// O10: the events of the process, aborts, and what a microtask queues.
const { log } = require('./_lib');
const { AsyncLocalStorage } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
als.run('w', () => process.on('warning', (x) => at('warning-' + x.message)));
als.run('x', () => process.emitWarning('one'));
als.run('b', () => process.on('beforeExit', () => at('before')));
als.run('e', () => process.on('exit', (c) => { at('exit-' + c); }));
als.run('mon', () => process.on('uncaughtExceptionMonitor', (e) => at('monitor-' + e.message)));
als.run('u', () => process.once('uncaughtException', (e) => { at('uncaught-' + e.message); als.enterWith('after-uncaught'); setImmediate(() => at('im')); process.nextTick(() => at('tk')); }));
als.run('t', () => setTimeout(() => { als.run('deep', () => { als.enterWith('deeper'); throw new Error('t'); }); }, 10));
als.run('s', () => setTimeout(() => { at('s'); const c = new AbortController(); als.run('l', () => c.signal.addEventListener('abort', () => { at('abort'); als.enterWith('in-abort'); }, { once: true })); als.run('a', () => { c.abort(); at('aborted'); }); at('s-end'); }, 200));
als.run('q', () => setTimeout(() => { queueMicrotask(() => { at('micro'); als.enterWith('micro2'); process.nextTick(() => { at('tick-of-micro'); }); Promise.resolve().then(() => at('then-of-micro')); }); als.exit(() => queueMicrotask(() => at('micro-exit'))); }, 300));
als.run('k', () => setTimeout(() => { process.exitCode = 3; }, 400));
