'use strict';
// N100 N149: a socket whose connection was refused connects again, and fails again.
const { log, tmp } = require('./_lib');
const net = require('net');
const c = new net.Socket();
let left = 2;
c.on('connect', () => { log('connect'); c.end('bye'); });
c.on('error', (e) => log('error-' + e.code));
c.on('end', () => log('end'));
c.on('close', (bad) => {
  log('close-' + bad);
  if (left-- > 0) return c.connect(tmp('none'));
  if (left === -1) return server.listen(tmp('s'), () => c.connect(tmp('s')));
  server.close(() => log('server-closed'));
});
const server = net.createServer((s) => { s.on('data', (d) => log('got-' + d)); s.on('close', () => log('server.close')); });
c.connect(tmp('none'));
