'use strict';
// O1 O2 O6 O7: two storages in functions that run side by side.
const { log, block } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const b = new AsyncLocalStorage();
const both = (w) => log(w + '-' + als.getStore() + '-' + b.getStore());
async function worker(n) {
  als.enterWith('a' + n); await null; b.enterWith('b' + n); both('w' + n);
  await new Promise((r) => setImmediate(r)); both('w2' + n);
  const s = AsyncLocalStorage.snapshot();
  als.exit(() => { b.enterWith('x' + n); s(() => both('snap' + n)); both('exited' + n); als.run('again' + n, () => s(() => both('rerun' + n))); both('still' + n); });
  both('w3' + n);
  return AsyncLocalStorage.bind(() => both('bound' + n));
}
als.run('outer', async () => {
  const fs = await Promise.all([worker(1), worker(2)]); both('outer');
  fs.forEach((f) => f()); b.run('deep', () => { fs[0](); both('deep'); });
  b.exit(() => { both('b-exit'); setTimeout(() => both('timer'), 1); Promise.resolve().then(() => both('then')); });
  both('end');
});
both('main');
