'use strict';
// H121: Readable.from an async generator: one item ahead, its events against microtasks, errors and destruction.
const { log } = require('./_lib');
const { Readable } = require('stream');
const watch = (name, r) => { for (const e of ['end', 'close']) r.on(e, () => log(name + '.' + e)); r.on('error', (e) => log(name + '.' + e.message)); };
const chain = (name, n) => { let p = Promise.resolve(); for (let i = 1; i <= n; i++) p = p.then(() => log(name + i)); };
async function* gen(n) { try { for (let i = 1; i <= n; i++) { log('yield-' + i); yield i; } } finally { log('finally'); } }
const a = Readable.from(gen(2));
watch('a', a);
a.on('data', (x) => log('a-' + x));
chain('p', 8);
setTimeout(() => {
  const b = Readable.from((async function* () { yield 1; throw new Error('bad'); })());
  watch('b', b);
  b.on('data', (x) => log('b-' + x));
}, 10);
setTimeout(() => {
  const c = Readable.from(gen(9), { highWaterMark: 1 });
  watch('c', c);
  c.on('readable', () => { log('c-' + c.read()); c.destroy(); log('destroyed'); chain('q', 6); });
}, 20);
setTimeout(() => {
  const d = Readable.from(gen(9));
  watch('d', d);
  d.once('data', (x) => { log('d-' + x); d.destroy(new Error('enough')); chain('r', 6); });
}, 30);
setTimeout(() => {
  const e = Readable.from([1, 2, 3]);
  watch('e', e);
  e.on('data', (x) => { log('e-' + x); if (x === 2) { e.destroy(); chain('s', 4); } });
}, 40);
