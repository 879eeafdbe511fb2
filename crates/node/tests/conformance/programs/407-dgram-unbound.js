'use strict';
// N103: sends of an unbound socket wait for the binding, and so does the close after them.
const { log } = require('./_lib');
const dgram = require('dgram');
process.on('uncaughtException', (e) => log(`uncaught ${e.code}`));
const make = (name) => {
  const s = dgram.createSocket('udp4');
  s.on('listening', () => log(name + ' listening'));
  s.on('close', () => log(name + ' close'));
  return s;
};
const to = [9, '127.0.0.1'];
const a = make('a');
a.send('a', ...to, (e, n) => log(`a sent ${n}`));
a.send('aa', ...to, (e, n) => { log(`a sent ${n}`); a.close(); });
process.nextTick(() => log('tick'));
Promise.resolve().then(() => log('promise'));
const b = make('b');
b.send('b', ...to, () => log('never'));
b.close();
log('b closes');
const c = make('c');
c.bind(0);
c.close(() => log('c callback'));
const d = make('d');
d.close(() => log('d callback'));
const e = make('e');
e.send('e', ...to, () => log('never'));
e.close();
e.send('e', ...to, () => log('never'));
setImmediate(() => {
  log('immediate');
  const taken = make('taken');
  taken.bind(0, '127.0.0.1', () => {
    const f = make('f');
    f.bind(taken.address().port, '127.0.0.1', () => log('never'));
    f.send('f', ...to, () => log('never'));
    setImmediate(() => { log('f again'); f.bind(0, '127.0.0.1', () => { log('f bound'); f.close(); taken.close(); }); });
  });
});
