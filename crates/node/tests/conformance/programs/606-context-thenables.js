'use strict';
// O5: thenables in every place.
const { log } = require('./_lib');
const { AsyncLocalStorage } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const run = (s, f) => als.run(s, f);
// thenables in odd places
const th = (tag, v) => ({ then(ok, no) { at('then-' + tag); als.enterWith('in-' + tag); if (v instanceof Error) no(v); else ok(v); at('after-ok-' + tag); } });
run('a', async () => { const v = await th('1', 7); at('v' + v); try { await th('2', new Error('no')); } catch (e) { at('c-' + e.message); } als.enterWith('a2'); await { then: (ok) => setTimeout(() => { at('t'); als.enterWith('t2'); ok(); }, 5) }; at('end'); });
run('b', () => Promise.resolve(th('3', 1)).then((v) => { at('p' + v); return th('4', 2); }).then((v) => at('q' + v)));
run('c', () => Promise.all([th('5', 1), th('6', 2), 3]).then((v) => at('all' + v.join('')))); 
run('d', () => Promise.race([th('7', new Error('r')), new Promise(() => {})]).then(null, (e) => e).then((e) => { at('r-' + e.message); als.enterWith('d2'); return th('8', 1); }).finally(() => at('f')).then((v) => at('last' + v)));
run('e', () => new Promise((ok) => { ok(th('10', 1)); als.enterWith('e2'); }).then(() => at('e-end')));
run('g', async function () { return th('11', 5); }).then((v) => at('g' + v));
run('i', () => Promise.any([th('13', new Error('n')), th('14', 2)]).then((v) => at('any' + v)));
run('j', () => Promise.allSettled([th('15', new Error('n')), th('16', 2)]).then((v) => at('set' + v.length)));
