'use strict';
// O10: what an uncaught error leaves to its handler, and what the loop goes on with.
const { log, block, tmp } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
process.on('uncaughtException', (e) => { at('uncaught-' + e.message); process.nextTick(() => at('tick-of-handler')); als.enterWith('handler'); });
als.run('tick', () => { process.nextTick(() => { process.nextTick(() => at('tick-left')); throw new Error('tick'); }); process.nextTick(() => at('tick-next')); });
setImmediate(() => at('plain-1'));
als.run('immediate', () => setImmediate(() => { als.run('deep', () => { throw new Error('deep'); }); }));
setImmediate(() => at('plain-2'));
setImmediate(() => setImmediate(timers));
const timers = () => als.run('timer', () => { setTimeout(() => { als.enterWith('timer2'); throw new Error('timer'); }, 20); setTimeout(() => { at('timer-next'); setImmediate(() => als.exit(emitter)); }, 20); block(30); });
const emitter = () => als.run('emitter', () => { const e = new (require('events'))(); setTimeout(() => als.run('emit', () => e.emit('error', new Error('emitted'))), 1); setImmediate(() => als.exit(() => setTimeout(() => at('last'), 50))); });
