'use strict';
// O11: what is told around errors that nothing catches.
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
process.on('uncaughtException', (e) => { where('uncaught-' + e.message); });
process.on('unhandledRejection', (e) => { where('unhandled-' + e.message); });
process.once('beforeExit', () => { where('before-exit'); setTimeout(() => where('revived'), 1); });
process.on('exit', () => where('exit'));
const steps = [
  () => { setImmediate(() => { where('i1'); setImmediate(next); throw new Error('immediate'); }); setImmediate(() => where('i2')); },
  () => { process.nextTick(() => { where('t1'); process.nextTick(() => where('t3')); throw new Error('tick'); }); process.nextTick(() => where('t2')); setImmediate(next); },
  () => { let n = 0; const i = setInterval(() => { where('interval'); if (++n === 2) { clearInterval(i); setTimeout(next, 50); } throw new Error('interval'); }, 10); },
  () => { const r = new AsyncResource('Mine', { requireManualDestroy: true }); setTimeout(() => { where('before-scope'); r.runInAsyncScope(() => { where('scope'); throw new Error('scope'); }); }, 1); setTimeout(() => { r.emitDestroy(); setTimeout(next, 10); }, 60); },
  () => { Promise.reject(new Error('rejected')); setImmediate(next); },
  () => { where('end'); },
];
function next() { steps.shift()(); }
next();
