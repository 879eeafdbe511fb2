'use strict';
// N98 N149: a time-out destroys the socket, which then connects again; a refused one connects again.
const { log } = require('./_lib');
const net = require('net');
const server = net.createServer((s) => { s.resume(); s.on('error', () => {}); });
const gone = net.createServer();
gone.listen(0, '127.0.0.1', () => {
  const refused = gone.address().port;
  gone.close(() => server.listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    const connect = (c, p = port) => c.connect(p, '127.0.0.1');
    const state = (c) => `connecting-${c.connecting} destroyed-${c.destroyed}`;
    const rounds = [
      (c) => { connect(c); c.setTimeout(50); c.once('timeout', () => { c.destroy(); connect(c); }); },
      (c) => { connect(c); c.setTimeout(50); c.once('timeout', () => c.destroy()); c.once('close', () => connect(c)); },
      (c) => { connect(c); c.setTimeout(50); c.once('timeout', () => { c.destroy(); connect(c); c.destroy(); connect(c); c.setTimeout(50); }); },
      (c) => { connect(c, refused); c.once('error', () => connect(c)); },
      (c) => { connect(c, refused); c.once('close', () => connect(c)); },
      (c) => { connect(c, refused); c.once('error', () => { connect(c, refused); c.once('error', () => connect(c)); }); },
      (c) => { connect(c, refused); c.once('error', () => { connect(c); c.destroy(); }); },
    ];
    const next = () => {
      const round = rounds.shift();
      if (!round) return server.close(() => log('server-closed'));
      const c = new net.Socket();
      c.on('error', (e) => log('error-' + (e.code ?? e.message)));
      c.on('timeout', () => log('timeout ' + state(c)));
      c.on('connect', () => log('connect'));
      c.on('close', (bad) => log(`close-${!!bad} ${state(c)}`));
      round(c);
      setTimeout(() => { log(`destroy ${state(c)}`); c.destroy(); }, 300);
      setTimeout(next, 400);
    };
    next();
  }));
});
