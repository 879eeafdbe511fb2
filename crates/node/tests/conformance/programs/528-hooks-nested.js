'use strict';
// O11: resources inside of resources, triggers of the program's choice, errors inside of a scope.
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
const a = new AsyncResource('A');
const b = new AsyncResource('B', { triggerAsyncId: a.asyncId() });
const c = a.runInAsyncScope(() => new AsyncResource('C'));
a.runInAsyncScope(() => { where('a'); b.runInAsyncScope(() => { where('b'); c.runInAsyncScope(() => where('c')); where('b2'); setImmediate(() => where('immediate')); }); where('a2'); });
try { c.runInAsyncScope(() => { where('throws'); throw new Error('x'); }); } catch { where('caught'); }
log('returned-' + b.runInAsyncScope((x, y) => x + y, null, 1, 2));
const f = c.bind(() => { where('bound'); process.nextTick(() => where('tick')); return 7; });
setTimeout(() => { where('timeout'); log('gives-' + f()); a.runInAsyncScope(() => setTimeout(() => { where('inner'); a.emitDestroy(); b.emitDestroy(); }, 50)); }, 50);
queueMicrotask(() => { where('micro'); b.runInAsyncScope(() => queueMicrotask(() => where('micro-b'))); });
log('ids-' + [b.triggerAsyncId() === a.asyncId(), c.triggerAsyncId() === a.asyncId(), a.triggerAsyncId() === executionAsyncId()].join());
