'use strict';
// O5: combinators, thenables, finally and already settled promises.
const { log, block, tmp } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const p = als.run('p', () => Promise.resolve(1));
als.run('a', () => p.then(() => at('settled')));
const d = []; const defer = () => new Promise((r, j) => d.push([r, j]));
const [x, y] = als.run('made', () => [defer(), defer()]);
als.run('race', () => Promise.race([x, y]).then(() => at('race')));
als.run('any', () => Promise.any([x, y]).then(() => at('any')));
als.run('settled', () => Promise.allSettled([x, y]).then(() => at('all-settled')));
als.run('finally', () => x.finally(() => at('finally')).then(() => at('after-finally')));
als.run('adopt', () => new Promise((r) => r(x)).then(() => at('adopted')));
als.run('thenable', async () => { await { then(r) { at('in-then'); als.enterWith('changed'); r(); } }; at('awaited-thenable'); });
als.run('catch', () => y.catch(() => { at('caught'); als.enterWith('entered'); return 2; }).then(() => at('after-catch')));
setImmediate(() => als.run('one', () => d[0][0]()));
setImmediate(() => als.run('two', () => d[1][1](new Error('no'))));
async function sub() { await null; als.enterWith('sub'); return 1; }
als.run('outer', async () => { const q = sub(); at('before-sub'); await q; at('after-sub'); await Promise.all([sub(), sub()]); at('after-all'); });
