'use strict';
// O11: async functions that call each other, throw and return promises.
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
async function leaf(n) { where('leaf' + n); if (n === 2) throw new Error('two'); return n; }
async function middle() { where('middle'); const a = await leaf(1); where('a' + a); let b; try { b = await leaf(2); } catch (x) { where('caught'); b = 0; } return leaf(3); }
const p = middle();
where('called');
p.then((v) => { where('then' + v); setImmediate(() => { where('immediate'); both(); }); });
async function both() { where('both'); const r = await Promise.all([leaf(4), leaf(5)]); where('all' + r.join('')); await new Promise((r) => process.nextTick(r)); where('ticked'); await Promise.resolve(); where('null'); }
