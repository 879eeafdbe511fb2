'use strict';
// O11: hooks that enable and disable hooks.
const { log, block } = require('./_lib');
const { createHook, executionAsyncId, triggerAsyncId } = require('async_hooks');
const names = new Map([[executionAsyncId(), 'main'], [0, 'none']]);
const count = {};
const name = (id) => names.get(id) || 'unknown';
const init = (id, type, trigger) => { count[type] = (count[type] || 0) + 1; names.set(id, type + count[type]); log('init-' + name(id) + '-by-' + name(trigger) + '-in-' + name(executionAsyncId())); };
const before = (id) => log('before-' + name(id));
const after = (id) => log('after-' + name(id));
const destroy = (id) => { if (/Timeout|Immediate|Mine/.test(name(id))) log('destroy-' + name(id)); };
const where = (w) => log(w + '-in-' + name(executionAsyncId()) + '-by-' + name(triggerAsyncId()));
const one = createHook({ before(id) { log('1b-' + name(id)); }, after(id) { log('1a-' + name(id)); } });
const two = createHook({ init(id, type, t) { init(id, type, t); if (type === 'Immediate') one.enable(); }, before(id) { log('2b-' + name(id)); }, after(id) { log('2a-' + name(id)); one.disable(); } });
const three = createHook({ init(id, type) { log('3i-' + type); } });
two.enable();
setTimeout(() => { where('t'); setImmediate(() => { where('im'); three.enable(); process.nextTick(() => { where('tick'); two.disable(); setImmediate(() => { where('last'); three.disable(); setTimeout(() => where('quiet'), 1); }); }); }); }, 5);
process.nextTick(() => { where('first'); two.enable(); two.enable(); setTimeout(() => where('twice'), 50); });
block(10);
