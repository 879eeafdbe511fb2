'use strict';
// O5: thenables in every place that takes over a promise.
const { log, block } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const thenable = (tag) => ({ then(r) { at('then-' + tag); als.enterWith('in-' + tag); queueMicrotask(() => { at('micro-' + tag); r(tag); }); } });
als.run('a', () => Promise.resolve().then(() => { at('first'); return thenable('x'); }).then((v) => { at('got-' + v); als.enterWith('late'); return v; }).then((v) => at('last-' + v)));
als.run('b', () => Promise.resolve(thenable('y')).then((v) => at('resolved-' + v)));
als.run('c', () => { const p = new Promise((r) => { at('executor'); als.enterWith('exec'); r(thenable('z')); }); at('made'); p.then((v) => at('settled-' + v)); });
als.run('d', async () => { const v = await thenable('w'); at('awaited-' + v); await null; at('awaited-null'); });
als.run('e', async () => thenable('ret')).then((v) => at('ret-' + v));
als.run('f', () => { return Promise.all([Promise.resolve(thenable('p')), Promise.resolve('2')]).then((v) => at('all-' + v.join(''))); });
als.run('g', () => Promise.race([Promise.resolve(thenable('q')), new Promise(() => {})]).then((v) => at('race-' + v)));
als.run('h', () => Promise.reject(new Error('no')).catch(() => { at('caught'); return 'c'; }).finally(() => { at('finally'); als.enterWith('fin'); }).then((v) => at('end-' + v)));
at('main');
