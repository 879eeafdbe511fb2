'use strict';
// O3 O6: the lanes, phases and entries of a recursion.
const { log, block } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const step = (n) => {
  at('step-' + n);
  if (n === 0) return;
  als.run('r' + n, () => process.nextTick(() => {
    at('tick-' + n); als.enterWith('t' + n);
    queueMicrotask(() => {
      at('micro-' + n); als.enterWith('m' + n);
      setImmediate(() => { at('immediate-' + n); als.exit(() => setTimeout(() => { at('timeout-' + n); step(n - 1); }, 1)); at('immediate-end-' + n); });
    });
    process.nextTick(() => at('tick2-' + n));
  }));
  at('after-' + n);
};
als.run('top', () => step(3));
const down = async (n) => { at('down-' + n); if (n === 0) { als.enterWith('bottom'); return; } await als.run('d' + n, () => down(n - 1)); at('up-' + n); };
als.run('down', () => down(3)).then(() => at('done'));
