'use strict';
// O3: refreshed, cleared and nested timers of one list, each with the store of its setting.
const { log, block } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const t = als.run('t', () => setTimeout(() => at('t'), 10));
als.run('r', () => t.refresh());
for (const s of ['a', 'b', 'c']) als.run(s, () => setTimeout(() => { at('list'); setTimeout(() => at('inner'), 20); als.enterWith(s + '2'); setImmediate(() => at('after-enter')); }, 10));
setTimeout(() => at('plain'), 10);
als.run('late', () => { const x = setTimeout(() => at('never'), 10); setTimeout(() => { clearTimeout(x); at('cleared'); }, 5); });
als.run('args', () => setTimeout(at, 10, 'argument'));
let n = 0;
als.run('i', () => { const i = setInterval(() => { at('interval-' + n); als.run('n' + n, () => setImmediate(() => at('of-interval'))); if (++n === 3) clearInterval(i); }, 60); });
als.run('un', () => { const u = setTimeout(() => at('unref'), 95); u.unref(); u.ref(); });
const f = als.run('f', () => setTimeout(() => at('fired'), 10));
setTimeout(() => als.run('refresher', () => f.refresh()), 300);
block(5);
