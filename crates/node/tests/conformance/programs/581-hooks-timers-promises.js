'use strict';
// O11: awaited timers and immediates, and who causes what.
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
const { setTimeout: sleep, setImmediate: turn } = require('timers/promises');
(async () => { where('begin'); await sleep(10); where('slept'); await turn(); where('turned'); try { await Promise.reject(new Error('no')); } catch { where('caught'); } finally { where('finally'); } })().then(() => where('end'));
