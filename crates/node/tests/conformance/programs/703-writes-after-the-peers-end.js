'use strict';
// N96: a write after the end of both directions is the peer's fault if the peer has ended.
const { log, tmp } = require('./_lib');
const net = require('net');
const why = (name) => (e) => log(`${name}-${e.code}-${e.message}`);
const server = net.createServer((c) => {
  c.on('error', (e) => log('error-' + e.code));
  c.on('close', (bad) => { log('close-' + bad); log('late-' + c.write('x', why('late'))); });
  c.on('end', () => {
    log('end');
    process.nextTick(() => {
      c.end();
      log('write-' + c.write('x', why('write')));
      c.end('y', why('end'));
    });
  });
  c.resume();
});
server.listen(tmp('s'), () => {
  const c = net.connect({ path: tmp('s'), allowHalfOpen: true });
  c.end();
  c.write('x', why('own'));
  c.on('error', (e) => log('c.error-' + e.code));
  c.on('close', () => server.close(() => log('server-closed')));
});
