'use strict';
// O3 O6 O7 O8: what a callback enters stays with its timer, its resource, its snapshot and its emitter.
const { log } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
let n = 0;
const i = als.run('i', () => setInterval(() => { at('interval'); als.enterWith('i' + n); setImmediate(() => at('of-interval')); if (++n === 3) { clearInterval(i); setTimeout(refreshed, 1); } }, 10));
const refreshed = () => als.exit(() => { let k = 0; const t = als.run('t', () => setTimeout(() => { at('timer'); als.enterWith('t' + k); if (++k < 3) t.refresh(); else setTimeout(resources, 1); }, 10)); });
const resources = () => als.exit(() => {
  const r = als.run('r', () => new AsyncResource('R'));
  r.runInAsyncScope(() => { at('scope-1'); als.enterWith('r1'); at('entered'); });
  at('between');
  r.runInAsyncScope(() => { at('scope-2'); als.run('inner', () => at('run')); r.runInAsyncScope(() => { at('nested'); als.enterWith('r2'); }); at('after-nested'); });
  r.runInAsyncScope(() => at('scope-3'));
  const b = r.bind(() => { at('bound'); als.enterWith('b'); });
  b(); b();
  const s = als.run('s', () => AsyncLocalStorage.snapshot());
  s(() => { at('snap-1'); als.enterWith('s1'); });
  s(() => at('snap-2'));
  const f = als.run('f', () => AsyncLocalStorage.bind((x) => { at('f-' + x); als.enterWith('f' + x); }));
  f(1); f(2);
  at('out');
  setImmediate(emitters);
});
const emitters = () => als.exit(() => {
  const { EventEmitterAsyncResource } = require('events');
  const e = als.run('e', () => new EventEmitterAsyncResource({ name: 'Mine' }));
  e.on('x', (v) => { at('x-' + v); als.enterWith('x' + v); });
  e.on('x', (v) => { at('y-' + v); if (v === 1) e.emit('x', 5); });
  e.emit('x', 1); e.emit('x', 2); at('end');
  const m = als.run('l', () => AsyncResource.bind((v) => { at('l-' + v); als.enterWith('l' + v); }));
  m(1); m(2);
});
