'use strict';
// N98: a socket that a server has accepted, and a local socket, connect while they are connected.
const { log, tmp } = require('./_lib');
const net = require('net');
const server = net.createServer((s) => {
  s.on('connect', () => log('never'));
  s.on('error', (e) => log('s.error-' + e.code));
  s.on('close', (bad) => { log('s.close-' + bad); local(); });
  s.resume();
  setTimeout(() => s.connect(server.address().port, '127.0.0.1'), 50);
});
server.listen(0, '127.0.0.1', () => {
  const c = net.connect(server.address().port, '127.0.0.1', () => log('connect'));
  c.on('error', () => {});
});
const local = () => {
  const server = net.createServer((s) => s.resume());
  server.listen(tmp('s'), () => {
    const c = net.connect(tmp('s'), () => { log('local'); c.connect(tmp('s')); log('connecting-' + c.connecting); });
    c.on('error', (e) => log('error-' + e.code));
    c.on('close', (bad) => { log('close-' + bad); server.close(); end(); });
  });
};
const end = () => server.close(() => log('server-closed'));
