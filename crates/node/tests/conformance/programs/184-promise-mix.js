'use strict';
// N11-N22: chains, async functions, combinators and thenables side by side.
const { log } = require('./_lib');
const count = (p, label) => { let n = 0; (async () => { for (;;) { await null; n++; if (n > 12) return; } })(); return p.then((v) => log(label + '-' + v + '@' + n), (e) => log(label + '!' + e + '@' + n)); };
count(Promise.all([1, Promise.resolve(2), (async () => 3)()]), 'all');
count(Promise.race([new Promise(() => {}), (async () => { await null; return 'r'; })()]), 'race');
count(Promise.any([Promise.reject(1), Promise.resolve(2)]), 'any');
count(Promise.allSettled([Promise.reject(1), 2]).then((r) => r.map((x) => x.status[0]).join('')), 'settled');
count((async () => { try { await Promise.reject('x'); } catch (e) { return e + 'c'; } finally { await null; } })(), 'try');
count(Promise.resolve().finally(() => {}).then(() => 'f'), 'finally');
count((async () => (async () => (async () => 'deep')())())(), 'nested');
count(Promise.reject('e').then(() => 1).catch((e) => { throw e + '2'; }).finally(() => {}), 'chain');
