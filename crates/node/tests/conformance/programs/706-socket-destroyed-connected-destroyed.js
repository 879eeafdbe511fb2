'use strict';
// N98 N149: destroy, connect and destroy again in one callback, before the first 'close'.
const { log } = require('./_lib');
const net = require('net');
const server = net.createServer((s) => { s.resume(); s.on('error', () => {}); });
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  const connect = (c) => c.connect(port, '127.0.0.1');
  const state = (c) => `connecting-${c.connecting} destroyed-${c.destroyed}`;
  const rounds = [
    (c) => { c.destroy(); connect(c); c.destroy(); },
    (c) => { c.destroy(); connect(c); c.destroy(); connect(c); c.destroy(); },
    (c) => { c.destroy(new Error('one')); connect(c); c.destroy(new Error('two')); },
    (c) => { c.destroy(new Error('one')); connect(c); c.destroy(); },
    (c) => { c.destroy(); process.nextTick(() => { connect(c); c.destroy(); }); },
  ];
  const next = () => {
    const round = rounds.shift();
    if (!round) return server.close(() => log('server-closed'));
    const c = new net.Socket();
    c.once('connect', () => {
      log('connect');
      round(c);
      log(state(c));
      process.nextTick(() => log('tick'));
      setImmediate(() => log('immediate'));
    });
    c.on('error', (e) => log('error-' + (e.code ?? e.message)));
    c.on('close', (bad) => log(`close-${!!bad} ${state(c)}`));
    connect(c);
    setTimeout(next, 100);
  };
  next();
});
