'use strict';
// O10: who sees what of a rejection.
const { log, block, tmp } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
let reject;
als.run('made', () => new Promise((_, r) => { reject = r; }));
process.on('unhandledRejection', (r, p) => { at('unhandled-' + r); als.run('handler', () => p.catch(() => at('late-catch'))); });
process.on('rejectionHandled', () => at('handled'));
process.on('uncaughtException', (e) => { at('uncaught-' + e.message); });
als.run('rejecter', () => reject('one'));
als.run('async', async () => { at('async'); throw 'two'; });
als.run('chain', () => Promise.reject('three').then(() => {}));
setTimeout(() => als.run('emit', () => setImmediate(() => { throw new Error('five'); })), 10);
