'use strict';
// O11: resources of the program: triggers, bound functions, nesting over timers.
const { log, block } = require('./_lib');
const { createHook, executionAsyncId, triggerAsyncId, AsyncResource } = require('async_hooks');
const names = new Map([[executionAsyncId(), 'main'], [0, 'none']]);
const count = {};
const name = (id) => names.get(id) || 'unknown';
const h = createHook({
  init(id, type, trigger) { count[type] = (count[type] || 0) + 1; names.set(id, type + count[type]); log('init-' + name(id) + '-by-' + name(trigger) + '-in-' + name(executionAsyncId())); },
  before(id) { log('before-' + name(id)); },
  after(id) { log('after-' + name(id)); },
  destroy(id) { if (/Timeout|Immediate|Mine|Other/.test(name(id))) log('destroy-' + name(id)); },
}).enable();
const where = (w) => log(w + '-in-' + name(executionAsyncId()) + '-by-' + name(triggerAsyncId()));
const keep = { requireManualDestroy: true };
const a = new AsyncResource('Mine', keep);
const b = new AsyncResource('Other', { triggerAsyncId: a.asyncId(), ...keep });
log([a.asyncId() < b.asyncId(), name(a.triggerAsyncId()), name(b.triggerAsyncId())].join());
const f = a.bind((x) => { where('bound-' + x); return b.runInAsyncScope((y) => { where('inner'); return x + y; }, null, 10); });
log('sum-' + f(1));
const g = AsyncResource.bind((x) => { where('static-' + x); process.nextTick(() => where('tick')); return x * 2; }, 'Named');
b.runInAsyncScope(() => {
  where('b'); log('twice-' + g(4));
  setTimeout(() => { where('timer'); log('sum-' + f(5)); a.runInAsyncScope(() => setImmediate(() => { where('immediate'); b.emitDestroy(); a.emitDestroy(); setTimeout(() => where('last'), 10); })); }, 10);
  Promise.resolve().then(() => where('then'));
});
try { a.runInAsyncScope(() => { where('throws'); throw new Error('e'); }); } catch (e) { where('caught-' + e.message); }
log('ids-' + (executionAsyncId() === 1) + '-' + (triggerAsyncId() === 0));
