'use strict';
// O11: timers and immediates that clear themselves and each other: the order in which their ends are told.
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
createHook({ init, before, after, destroy }).enable();
const r = new AsyncResource('Mine'); const s = new AsyncResource('Mine');
const never = setTimeout(() => {}, 1000);
let n = 0;
const i = setInterval(() => { where('interval'); if (++n === 2) { s.emitDestroy(); clearInterval(i); r.emitDestroy(); clearTimeout(never); setImmediate(next); } }, 10);
function next() {
  const t = setTimeout(() => { where('self'); clearTimeout(t); clearTimeout(u); setTimeout(() => where('inner'), 100); }, 10);
  const u = setTimeout(() => where('never'), 10);
  const v = setTimeout(() => { where('third'); const x = setImmediate(() => { where('x'); clearImmediate(x); clearImmediate(y); setTimeout(again, 1); }); const y = setImmediate(() => where('y')); }, 10);
  block(15);
}
function again() {
  const i = setInterval(() => { where('once'); clearInterval(i); clearInterval(i); }, 20);
  const j = setInterval(() => {}, 1000); j.unref();
  setTimeout(() => { clearInterval(j); where('last'); }, 200);
}
