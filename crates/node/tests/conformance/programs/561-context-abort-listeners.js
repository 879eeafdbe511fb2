'use strict';
// O8: abort listeners run with the context of the abort, timers of a signal with that of its making.
const { log, block } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const { setTimeout: sleep } = require('timers/promises');
const { EventEmitter, once } = require('events');
const c = als.run('made', () => new AbortController());
als.run('l1', () => c.signal.addEventListener('abort', () => { at('one'); als.enterWith('changed'); }));
als.run('l2', () => c.signal.addEventListener('abort', () => { at('two'); setImmediate(() => at('two-immediate')); }));
const any = als.run('any', () => AbortSignal.any([c.signal]));
als.run('l4', () => any.addEventListener('abort', () => at('any')));
als.run('sleeper', () => sleep(1000, null, { signal: c.signal }).catch((e) => at('rejected-' + e.name)));
als.run('waiter', async () => { try { await once(new EventEmitter(), 'x', { signal: c.signal }); } catch (e) { at('once-' + e.name); await null; at('once-after'); } });
setImmediate(() => { als.run('abort', () => { c.abort(); at('after'); }); at('outside'); });
setTimeout(() => {
  als.run('late', () => { const s = AbortSignal.abort(); at('aborted-' + s.aborted); sleep(1, null, { signal: s }).catch(() => at('at-once')); });
  const t = als.run('t', () => AbortSignal.timeout(50));
  als.run('tl', () => t.addEventListener('abort', () => { at('timeout'); als.exit(() => setTimeout(() => at('last'), 20)); }));
  setTimeout(() => {}, 120);
}, 50);
