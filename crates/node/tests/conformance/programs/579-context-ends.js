'use strict';
// O10: what the listeners of the process run with.
const { log, block } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
let n = 0;
als.run('be', () => process.on('beforeExit', () => { at('before-exit'); if (n++ === 0) { als.enterWith('be2'); setImmediate(() => { at('revived'); Promise.resolve().then(() => at('revived-then')); }); } }));
als.run('ex', () => process.on('exit', (c) => { at('exit-' + c); queueMicrotask(() => at('exit-micro')); }));
als.run('un', () => process.on('unhandledRejection', (r) => at('unhandled-' + r)));
als.run('uc', () => process.on('uncaughtException', (e, o) => at('uncaught-' + e.message + '-' + o)));
als.run('rej', () => { const p = Promise.resolve(); als.run('then', () => p.then(() => { at('throws'); throw 'x'; })); });
als.run('asy', async () => { await null; als.enterWith('asy2'); throw 'y'; });
als.run('imm', () => setImmediate(() => { als.run('in', () => process.nextTick(() => { throw new Error('tick'); })); Promise.resolve().then(() => at('survives')); }));
als.run('mt', () => setTimeout(() => { als.run('mt2', () => { throw new Error('timer'); }); }, 200));
