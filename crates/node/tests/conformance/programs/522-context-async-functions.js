'use strict';
// O5 O6: enterWith before and after awaits, in called async functions, in try and finally.
const { log, block } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const turn = () => new Promise((r) => setImmediate(r));
async function inner(s) { at('inner-begin-' + s); als.enterWith(s); at('inner-entered'); await turn(); at('inner-awaited'); als.enterWith(s + '2'); await null; at('inner-end'); return s; }
async function outer() {
  at('outer'); const p = inner('in'); at('outer-called'); await p; at('outer-awaited');
  als.enterWith('out'); const v = await inner('again'); at('outer-' + v);
  try { als.enterWith('try'); await turn(); throw new Error('x'); } catch (e) { at('catch-' + e.message); als.enterWith('catch'); await null; at('catch-awaited'); } finally { at('finally'); await null; at('finally-awaited'); }
  return 'done';
}
als.run('start', () => outer().then((v) => at(v)));
at('main');
als.run('parallel', async () => { const r = await Promise.all([als.run('p', () => inner('pp')), als.run('q', async () => { await null; at('q'); await turn(); at('q2'); return 'qq'; })]); at('all-' + r.join('')); });
als.run('thrown', async () => { await null; als.enterWith('deep'); throw new Error('deep'); }).catch((e) => at('caught-' + e.message));
als.run('ret', async () => turn().then(() => { at('ret-then'); als.enterWith('lost'); return 5; })).then((v) => at('ret-' + v));
