'use strict';
// N96 N98: both ends of a connection: end, finish, close, in the order of their causes.
const { log } = require('./_lib');
const net = require('net');
const server = net.createServer((s) => {
  s.on('data', (d) => { log('s-data-' + d); s.end('bye', () => log('s-end-cb')); });
  s.on('end', () => log('s-end'));
  s.on('finish', () => log('s-finish'));
  s.on('close', () => { log('s-close'); server.close(() => log('server-close')); });
});
server.listen(0, '127.0.0.1', () => {
  const c = net.connect(server.address().port, '127.0.0.1');
  c.on('connect', () => { log('c-connect'); c.write('hi', () => log('c-written')); log('c-sync'); });
  c.on('data', (d) => { log('c-data-' + d); process.nextTick(() => log('c-data.tick')); });
  c.on('end', () => { log('c-end'); });
  c.on('finish', () => { log('c-finish'); });
  c.on('close', (e) => log('c-close-' + e));
});
