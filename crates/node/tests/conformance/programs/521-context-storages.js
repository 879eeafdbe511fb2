'use strict';
// O1 O2 O7 O10: three storages, one disabled in between; snapshots and bound functions hold all of them.
const { log, block } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const two = new AsyncLocalStorage(); const three = new AsyncLocalStorage();
const all = (where) => log([where, als.getStore(), two.getStore(), three.getStore()].map(String).join('-'));
als.run(1, () => two.run(2, () => three.run(3, () => {
  all('nested');
  setImmediate(() => all('immediate'));
  const s = AsyncLocalStorage.snapshot();
  const b = AsyncLocalStorage.bind((x) => { all('bound-' + x); return x * 2; });
  two.exit(() => { all('exit-two'); setTimeout(() => all('timeout-of-exit'), 1); s(() => all('snapshot-in-exit')); });
  als.run(10, () => { all('rerun'); log(String(b(4))); s((x, y) => all('snap-' + x + y), 'p', 'q'); process.nextTick(b, 5); });
  three.enterWith(30);
  all('entered');
  s(() => { all('snapshot'); three.enterWith(300); all('entered-in-snapshot'); });
  all('after-snapshot');
  Promise.resolve(7).then(b).then((v) => all('then-' + v));
})));
all('outside');
setTimeout(() => { two.run('t', () => { const s = AsyncLocalStorage.snapshot(); two.disable(); all('disabled'); s(() => all('snap-disabled')); two.run('u', () => { all('run-again'); s(() => all('snap-again')); }); }); }, 100);
block(5);
