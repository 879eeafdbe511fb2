'use strict';
// N98 N149: a destroyed socket connects before its 'close': in the same callback, on a tick, in 'error'.
const { log } = require('./_lib');
const net = require('net');
let served = 0;
const server = net.createServer((s) => { s.resume(); s.on('error', () => {}); s.write('hello' + ++served); });
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  const connect = (c) => c.connect(port, '127.0.0.1');
  const state = (c) => `connecting-${c.connecting} destroyed-${c.destroyed}`;
  const rounds = [
    (c) => { c.destroy(); connect(c); },
    (c) => { c.destroy(); process.nextTick(() => connect(c)); },
    (c) => { c.destroy(new Error('one')); connect(c); },
    (c) => { c.once('error', () => connect(c)); c.destroy(new Error('two')); },
    (c) => { c.destroy(); queueMicrotask(() => connect(c)); },
    (c) => { c.destroy(); setImmediate(() => connect(c)); },
  ];
  const next = () => {
    const round = rounds.shift();
    if (!round) return server.close(() => log('server-closed'));
    const c = new net.Socket();
    c.once('data', (d) => {
      log('first-' + d);
      c.once('data', (d) => log('second-' + d));
      round(c);
      log(state(c));
    });
    c.on('error', (e) => log('error-' + (e.code ?? e.message)));
    c.on('connect', () => log('connect'));
    c.on('end', () => log('end'));
    c.on('close', (bad) => log(`close-${!!bad} ${state(c)}`));
    connect(c);
    setTimeout(() => { log('destroy ' + state(c)); c.destroy(); }, 100);
    setTimeout(next, 200);
  };
  next();
});
