'use strict';
// O8: awaited events, iterated events, errors and monitors.
const { log, block, tmp } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const { EventEmitter, on, once, errorMonitor, EventEmitterAsyncResource } = require('events');
const e = new EventEmitter();
e.on('newListener', (n) => at('new-' + String(n)));
als.run('loop', async () => { let n = 0; for await (const [v] of on(e, 'v')) { at('got-' + v); if (++n === 3) break; } at('left'); setImmediate(() => als.exit(fail)); });
als.run('emit1', () => { e.emit('v', 1); e.emit('v', 2); });
setImmediate(() => als.run('emit2', () => e.emit('v', 3)));
als.run('monitor', () => e.on(errorMonitor, () => at('monitor')));
als.run('error', async () => { try { await once(e, 'x'); } catch (x) { at('caught-' + x.message); } });
const fail = () => { als.run('failer', () => { e.emit('error', new Error('no')); at('after-error'); }); setImmediate(emits); };
const own = als.run('own', () => new EventEmitterAsyncResource({ name: 'Mine' }));
own.on('y', () => at('own'));
const emits = () => als.run('caller', () => { own.emit('y'); at('caller-after'); });
