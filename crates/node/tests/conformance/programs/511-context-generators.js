'use strict';
// O5: an async generator's body runs with the context of who asks first for it, and keeps its own entries.
const { log, block, tmp } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
async function* g() { at('start'); yield 1; at('second'); als.enterWith('gen'); yield 2; at('third'); }
const it = als.run('made', () => g());
(async () => {
  await als.run('n1', () => it.next());
  at('after-1');
  await als.run('n2', () => it.next());
  at('after-2');
  await als.run('n3', () => it.next());
  at('after-3');
  als.enterWith('main');
  for await (const v of g()) at('loop-' + v);
  at('end');
})();
