'use strict';
// O10 O11: the listener for an error of a microtask runs outside of all callbacks.
const { log } = require('./_lib');
const { createHook, executionAsyncId, triggerAsyncId, AsyncLocalStorage } = require('async_hooks');
const names = new Map([[executionAsyncId(), 'main'], [0, 'none']]);
const count = {};
const name = (id) => names.get(id) || 'unknown';
const init = (id, type, trigger) => { count[type] = (count[type] || 0) + 1; names.set(id, type + count[type]); log('init-' + name(id) + '-by-' + name(trigger) + '-in-' + name(executionAsyncId())); };
const before = (id) => log('before-' + name(id));
const after = (id) => log('after-' + name(id));
const promiseResolve = (id) => log('resolve-' + name(id));
const destroy = (id) => { if (/Timeout|Immediate|Mine/.test(name(id))) log('destroy-' + name(id)); };
const where = (w) => log(w + '-in-' + name(executionAsyncId()) + '-by-' + name(triggerAsyncId()));
createHook({ init, before, after, destroy, promiseResolve }).enable();
const als = new AsyncLocalStorage();
process.on('uncaughtException', (e) => { where('uncaught-' + e.message + '-' + als.getStore()); queueMicrotask(() => where('of-handler')); });
als.run('m', () => queueMicrotask(() => { where('m'); als.enterWith('m2'); process.nextTick(() => where('tick')); throw new Error('micro'); }));
als.run('n', () => queueMicrotask(() => { where('n-' + als.getStore()); }));
setImmediate(() => als.run('i', () => { where('i'); queueMicrotask(() => { throw new Error('second'); }); Promise.resolve().then(() => where('then')); }));
