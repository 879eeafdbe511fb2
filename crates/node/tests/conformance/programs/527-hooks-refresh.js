'use strict';
// O11: a timer that is refreshed before it fires, inside its callback, and after it has fired.
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
let n = 0;
const t = setTimeout(() => { where('t'); if (++n === 1) t.refresh(); }, 10);
t.refresh();
setTimeout(() => { where('later'); t.refresh(); setTimeout(() => { where('end'); clearTimeout(t); }, 30); }, 50);
