'use strict';
// N98 N149: a socket ends, and connects before its 'close'.
const { log } = require('./_lib');
const net = require('net');
let served = 0;
const server = net.createServer((s) => {
  const n = ++served;
  s.on('data', (d) => log(`got${n}-${d}`));
  s.on('end', () => log('peer-end' + n));
  s.on('error', () => {});
});
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  const connect = (c) => c.connect(port, '127.0.0.1');
  const state = (c) => `connecting-${c.connecting} destroyed-${c.destroyed} writable-${c.writable}`;
  const rounds = [
    (c) => { connect(c); c.once('end', () => { log('end'); c.destroy(); connect(c); }); c.end('two'); c.resume(); },
    (c) => { connect(c); c.once('close', () => { connect(c); log(state(c)); c.end('four'); }); c.end('three'); c.resume(); },
  ];
  const next = () => {
    const round = rounds.shift();
    if (!round) return server.close(() => log('server-closed'));
    const c = new net.Socket();
    c.on('error', (e) => log('error-' + (e.code ?? e.message)));
    c.on('connect', () => log('connect'));
    c.on('close', (bad) => log(`close-${!!bad} connecting-${c.connecting} destroyed-${c.destroyed}`));
    round(c);
    log(state(c));
    setTimeout(() => { log(`destroy connecting-${c.connecting} destroyed-${c.destroyed}`); c.destroy(); }, 200);
    setTimeout(next, 300);
  };
  next();
});
