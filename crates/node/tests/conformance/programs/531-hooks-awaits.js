'use strict';
// O11: async functions that call each other; what each await and each return makes and settles.
const { log, block } = require('./_lib');
const { createHook, executionAsyncId, triggerAsyncId, AsyncResource } = require('async_hooks');
const names = new Map([[executionAsyncId(), 'main'], [0, 'none']]);
const count = {};
const name = (id) => names.get(id) || 'unknown';
const init = (id, type, trigger) => { count[type] = (count[type] || 0) + 1; names.set(id, type + count[type]); log('init-' + name(id) + '-by-' + name(trigger) + '-in-' + name(executionAsyncId())); };
const before = (id) => log('before-' + name(id));
const after = (id) => log('after-' + name(id));
const destroy = (id) => log('destroy-' + name(id));
const where = (w) => log(w + '-in-' + name(executionAsyncId()) + '-by-' + name(triggerAsyncId()));
createHook({ init, before, after, promiseResolve(id) { log('resolve-' + name(id)); } }).enable();
async function leaf(x) { where('leaf'); await Promise.resolve(); where('leaf2'); return x; }
async function node() { where('node'); const v = await leaf(1); where('node-' + v); return leaf(2); }
node().then((v) => where('end-' + v));
setImmediate(async () => { where('immediate'); try { await Promise.reject(new Error('x')); } catch { where('caught'); } finally { where('finally'); } });
setTimeout(() => { new Promise((resolve) => { where('executor'); setTimeout(resolve, 5); }).then(() => where('settled')).finally(() => where('fin')); }, 20);
