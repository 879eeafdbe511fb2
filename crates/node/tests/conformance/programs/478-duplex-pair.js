'use strict';
// duplexPair: what one side writes the other reads; backpressure by reading, and the end.
const { log } = require('./_lib');
const { duplexPair } = require('stream');
const [a, b] = duplexPair();
const watch = (name, s) => { for (const e of ['end', 'finish', 'close']) s.on(e, () => log(name + '.' + e)); };
watch('a', a); watch('b', b);
a.write('one', () => log('one.cb'));
a.write('two', () => log('two.cb'));
log('written');
setTimeout(() => {
  log('reading');
  b.on('data', (d) => { log('b-' + d); b.write('got ' + d); });
  setTimeout(() => {
    a.on('data', (d) => log('a-' + d));
    a.end('last', () => log('end.cb'));
    setTimeout(() => { log('b.end()'); b.end(); }, 10);
  }, 10);
}, 10);
