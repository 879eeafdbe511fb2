'use strict';
// O11: hooks that are enabled and disabled by callbacks, two hooks at once, work from before a hook.
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
const early = setTimeout(() => { where('early'); }, 80);
const one = createHook({ init(id, type, t) { init(id, type, t); }, before(id) { log('1-before-' + name(id)); }, after(id) { log('1-after-' + name(id)); } });
const two = createHook({ before(id) { log('2-before-' + name(id)); }, after(id) { log('2-after-' + name(id)); }, destroy(id) { log('2-destroy-' + name(id)); } });
setImmediate(() => {
  where('plain');
  one.enable();
  setImmediate(() => { where('first'); two.enable(); process.nextTick(() => { where('both'); one.disable(); setImmediate(() => { where('second-only'); two.disable(); one.enable(); setTimeout(() => { where('last'); one.disable(); }, 150); }); }); });
});
