'use strict';
// O7: bound functions, resources, snapshots.
const { log, block, tmp } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const r = als.run('r', () => new AsyncResource('R'));
const f = r.bind((a, b) => { at('bound-' + a + b); return a + b; });
als.run('x', () => { log('sum-' + f(1, 2)); at('x'); });
try { als.run('t', () => r.runInAsyncScope(() => { at('throws'); throw new Error('e'); })); } catch { at('caught'); }
als.run('again', () => r.runInAsyncScope(() => at('resource-again')));
const s = als.run('one', () => AsyncLocalStorage.snapshot());
als.run('two', () => s(() => { at('snap'); setImmediate(() => at('from-snap')); als.exit(() => at('exited')); at('back'); }));
const b = als.run('b', () => AsyncLocalStorage.bind(() => { at('b'); return Promise.resolve(); }));
als.run('c', async () => { await b(); at('c'); });
const late = als.run('late', () => AsyncResource.bind(() => at('late')));
setImmediate(() => setTimeout(late, 1));
