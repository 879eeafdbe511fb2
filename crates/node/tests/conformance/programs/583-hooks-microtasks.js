'use strict';
// O11: closures of the lanes inside promises, timers and each other.
const { log, block } = require('./_lib');
const { createHook, executionAsyncId, triggerAsyncId, AsyncResource } = require('async_hooks');
const names = new Map([[executionAsyncId(), 'main'], [0, 'none']]);
const count = {};
const name = (id) => names.get(id) || 'unknown';
const h = createHook({
  init(id, type, trigger) { count[type] = (count[type] || 0) + 1; names.set(id, type + count[type]); log('init-' + name(id) + '-by-' + name(trigger) + '-in-' + name(executionAsyncId())); },
  before(id) { log('before-' + name(id)); },
  after(id) { log('after-' + name(id)); },
  promiseResolve(id) { log('resolve-' + name(id)); },
}).enable();
const where = (w) => log(w + '-in-' + name(executionAsyncId()) + '-by-' + name(triggerAsyncId()));
setTimeout(() => {
  where('timer');
  queueMicrotask(() => { where('m1'); process.nextTick(() => { where('t1'); queueMicrotask(() => where('m2')); }); Promise.resolve().then(() => where('p1')); });
  process.nextTick(() => { where('t2'); Promise.resolve().then(() => { where('p2'); queueMicrotask(() => where('m3')); }); });
  setImmediate(() => { where('i1'); clearImmediate(never); process.nextTick(() => where('t3')); });
  const never = setImmediate(() => where('never'));
}, 10);
setImmediate(() => { where('i0'); const t = setTimeout(() => {}, 1000); setImmediate(() => { clearTimeout(t); where('cleared'); }); });
new Promise((resolve) => { where('executor'); resolve(1); resolve(2); }).then((v) => where('v' + v)).finally(() => where('f'));
