'use strict';
// O1 O2 O6: run restores its own storage only; exit, disable and errors in between.
const { log, block } = require('./_lib');
const { AsyncLocalStorage } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const two = new AsyncLocalStorage();
const both = (w) => log(w + '-' + als.getStore() + '-' + two.getStore());
als.run('a', () => two.run('b', () => {
  als.exit(() => { both('exit'); two.exit(() => { both('both-exit'); setImmediate(() => both('imm-none')); }); als.enterWith('in-exit'); both('entered-in-exit'); Promise.resolve().then(() => both('then-in-exit')); });
  both('after-exit');
  als.exit(() => { two.run('c', () => { setTimeout(() => both('timer-c'), 1); als.run('again', () => { both('again'); }); both('after-again'); }); });
  both('end');
  try { als.exit(() => { als.enterWith('thrown'); throw new Error(); }); } catch { both('caught'); }
  try { als.run('x', () => { two.enterWith('y'); throw new Error(); }); } catch { both('caught-run'); }
  (async () => { try { await als.run('z', async () => { await null; two.enterWith('q'); throw new Error(); }); } catch { both('caught-async'); als.enterWith('after'); } finally { both('fin'); } await null; both('fin2'); })();
  Promise.resolve().then(() => { als.enterWith('th'); two.exit(() => { both('th-exit'); return 1; }); return new Promise((r) => { both('executor'); als.enterWith('ex'); setImmediate(() => { both('resolver'); r(); }); }); }).then(() => both('th-after'));
}));
both('main');
als.enterWith('M');
both('main-entered');
setImmediate(() => { both('im'); als.disable(); both('im-disabled'); als.enterWith('E'); both('im-again'); process.nextTick(() => { both('tk'); als.disable(); queueMicrotask(() => { both('mt'); als.run('R', () => both('R')); both('mt2'); }); }); });
setTimeout(() => both('t-end'), 20);
block(5);
