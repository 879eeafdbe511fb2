'use strict';
// O11: promises: a then is caused by its promise, an await too; the settling is told.
const { log, block } = require('./_lib');
const { createHook, executionAsyncId, triggerAsyncId } = require('async_hooks');
const names = new Map([[executionAsyncId(), 'main'], [0, 'none']]);
const count = {};
const name = (id) => names.get(id) || 'unknown';
const h = createHook({
  init(id, type, trigger) { count[type] = (count[type] || 0) + 1; names.set(id, type + count[type]); log('init-' + name(id) + '-by-' + name(trigger) + '-in-' + name(executionAsyncId())); },
  before(id) { log('before-' + name(id)); },
  after(id) { log('after-' + name(id)); },
  destroy(id) { log('destroy-' + name(id)); },
  promiseResolve(id) { log('resolve-' + name(id)); },
}).enable();
const where = (w) => log(w + '-in-' + name(executionAsyncId()) + '-by-' + name(triggerAsyncId()));
async function f() { where('f1'); await Promise.resolve(); where('f2'); await new Promise((r) => setImmediate(r)); where('f3'); return 1; }
const p = f();
p.then(() => where('then')).catch(() => {});
let settle; const q = new Promise((r) => { settle = r; });
q.then(() => { where('q'); return Promise.reject(new Error('no')); }).then(() => {}, () => where('caught'));
p.then(() => { setTimeout(() => { settle(); settle(); setTimeout(() => Promise.all([p, Promise.resolve(2)]).then(() => where('all')), 30); }, 30); });
