'use strict';
// N97 N98: a connecting socket is destroyed and connects again: at once, on a tick, in 'close'; in 'connect'.
const { log } = require('./_lib');
const net = require('net');
const server = net.createServer((s) => { s.resume(); s.on('error', () => {}); });
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  const connect = (c) => c.connect(port, '127.0.0.1');
  const state = (c) => `connecting-${c.connecting} destroyed-${c.destroyed}`;
  const rounds = [
    (c) => { connect(c); c.destroy(); connect(c); },
    (c) => { connect(c); c.destroy(); connect(c); c.destroy(); },
    (c) => { connect(c); c.destroy(); c.once('close', () => connect(c)); },
    (c) => { connect(c); c.once('connect', () => { c.destroy(); log(state(c)); }); c.once('connect', () => log('connect2')); },
    (c) => { connect(c); c.once('connect', () => { c.destroy(); connect(c); }); },
    (c) => { c.destroy(); connect(c); },
    (c) => { c.destroy(); connect(c); c.destroy(); },
  ];
  const next = () => {
    const round = rounds.shift();
    if (!round) return server.close(() => log('server-closed'));
    const c = new net.Socket();
    c.on('error', (e) => log('error-' + (e.code ?? e.message)));
    c.on('connect', () => log('connect'));
    c.on('ready', () => log('ready'));
    c.on('close', (bad) => log(`close-${!!bad} ${state(c)}`));
    round(c);
    log(state(c));
    setTimeout(() => { log('destroy ' + state(c)); c.destroy(); }, 100);
    setTimeout(next, 200);
  };
  next();
});
