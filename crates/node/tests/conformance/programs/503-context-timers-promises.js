'use strict';
// O5: awaited timers, signals and schedulers keep the awaiter's context.
const { log, block, tmp } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const { setTimeout: sleep, setImmediate: turn, setInterval: ticks, scheduler } = require('timers/promises');
als.run('s', async () => { await sleep(1); at('sleep'); await turn(); at('turn'); await scheduler.wait(1); at('wait'); await scheduler.yield(); at('yield'); })
  .then(() => { at('then');
    return als.run('i', async () => { let n = 0; for await (const v of ticks(1, 'v')) { at('tick-' + v); als.enterWith('i' + n); if (++n === 3) break; } at('broke'); }); })
  .then(() => als.run('aborted', async () => {
    const c = new AbortController();
    als.run('listener', () => c.signal.addEventListener('abort', () => at('abort')));
    setImmediate(() => als.run('aborter', () => c.abort()));
    try { await sleep(1000, null, { signal: c.signal }); } catch (e) { at('caught-' + e.name); }
  }))
  .then(() => { at('end'); });
als.run('t', () => { const s = AbortSignal.timeout(300); s.addEventListener('abort', () => { at('timed-out'); }); setTimeout(() => {}, 350); });
