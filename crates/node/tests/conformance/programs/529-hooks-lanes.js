'use strict';
// O11: ticks, microtasks and immediates that queue each other.
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
createHook({ init, before, after, destroy(id) { if (!/Tick|Micro|PROMISE/.test(name(id))) destroy(id); } }).enable();
process.nextTick(() => { where('t1'); process.nextTick(() => { where('t2'); queueMicrotask(() => where('m2')); }); queueMicrotask(() => { where('m1'); setImmediate(() => where('i2')); }); });
queueMicrotask(() => { where('m0'); process.nextTick(() => where('t0')); queueMicrotask(() => where('m00')); });
setImmediate(() => { where('i1'); process.nextTick(() => { where('t3'); setImmediate(() => where('i3')); }); queueMicrotask(() => where('m3')); });
setImmediate(() => where('i4'));
