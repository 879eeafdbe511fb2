'use strict';
// O11: resources of the program, cleared timers, intervals, uncaught errors, bound functions; what is told of each.
const { log, block } = require('./_lib');
const { createHook, executionAsyncId, triggerAsyncId, AsyncResource } = require('async_hooks');
const names = new Map([[executionAsyncId(), 'main'], [0, 'none']]);
const count = {};
const name = (id) => names.get(id) || 'unknown';
const h = createHook({
  init(id, type, trigger) { count[type] = (count[type] || 0) + 1; names.set(id, type + count[type]); log('init-' + name(id) + '-by-' + name(trigger) + '-in-' + name(executionAsyncId())); },
  before(id) { log('before-' + name(id)); },
  after(id) { log('after-' + name(id)); },
  destroy(id) { log('destroy-' + name(id)); },
}).enable();
const where = (w) => log(w + '-in-' + name(executionAsyncId()) + '-by-' + name(triggerAsyncId()));
const r = new AsyncResource('Mine');
r.runInAsyncScope(() => { where('mine'); process.nextTick(() => where('tick')); });
where('main');
log('same-' + (r.asyncId() > 1) + '-' + name(r.triggerAsyncId()));
clearTimeout(setTimeout(() => {}, 100));
let n = 0; const i = setInterval(() => { where('interval'); if (++n === 2) { r.emitDestroy(); clearInterval(i); setTimeout(next, 1); } }, 50);
clearImmediate(setImmediate(() => {}));
process.on('uncaughtException', (e) => { where('uncaught-' + e.message); });
const steps = [
  () => { setTimeout(next, 20); throw new Error('x'); },
  () => { const f = AsyncResource.bind(() => where('bound')); f(); setTimeout(next, 1); },
  () => { h.disable(); setImmediate(() => { where('after-disable'); h.enable(); setTimeout(next, 1); }); },
  () => { const e = new (require('events').EventEmitterAsyncResource)({ name: 'Emitter' }); e.on('x', () => where('listener')); e.emit('x'); e.emitDestroy(); },
];
function next() { steps.shift()(); }
