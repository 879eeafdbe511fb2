'use strict';
// stream.compose: two transforms as one; its end, an error inside, destruction.
const { log } = require('./_lib');
const { compose, Transform } = require('stream');
const watch = (name, s) => { for (const e of ['end', 'finish', 'close']) s.on(e, () => log(name + '.' + e)); s.on('error', (e) => log(name + '.' + e.name + '-' + e.message)); };
const plus = () => new Transform({ objectMode: true, transform(x, _, cb) { cb(null, x + 1); } });
const strict = () => new Transform({ objectMode: true, transform(x, _, cb) { x > 10 ? cb(new Error('big')) : cb(null, x * 2); }, flush(cb) { log('flush'); cb(); } });
const a = plus(), b = strict();
const d = compose(a, b);
watch('a', a); watch('b', b); watch('d', d);
d.on('data', (x) => log('data-' + x));
d.write(1); d.end(2);
log('written');
setTimeout(() => {
  const e = compose(plus(), strict());
  watch('e', e);
  e.on('data', (x) => log('e-' + x));
  e.write(3); e.write(50); e.write(4);
}, 20);
setTimeout(() => {
  const f = compose(plus(), plus(), plus());
  watch('f', f);
  f.on('data', (x) => { log('f-' + x); f.destroy(); });
  f.write(1);
}, 40);
