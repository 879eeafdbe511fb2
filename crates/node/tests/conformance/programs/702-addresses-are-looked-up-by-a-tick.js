'use strict';
// N95 N97: listen and connect to an address: its lookup is a tick.
const { log } = require('./_lib');
const net = require('net');
const server = net.createServer(() => log('connection'));
process.nextTick(() => log('tick0'));
server.listen(0, '127.0.0.1');
log('listening-' + server.listening);
process.nextTick(() => { log('tick1-' + server.listening); process.nextTick(() => log('tick1.1')); });
process.nextTick(() => log('tick2'));
server.once('listening', () => {
  log('listening');
  const { port } = server.address();
  const c = net.connect(port, '127.0.0.1');
  c.on('connect', () => log('never'));
  c.on('close', (bad) => log('c.close-' + bad));
  c.destroy();
  const early = net.createServer();
  early.on('listening', () => log('never'));
  early.listen(0, '127.0.0.1');
  early.close((e) => log('early-' + e.code));
  process.nextTick(() => log('tick3'));
  const taken = net.createServer();
  taken.on('error', (e) => {
    log('error-' + e.code);
    taken.close((e) => log('taken-' + e.code + '-' + e.message));
  });
  taken.listen(port, '127.0.0.1');
  process.nextTick(() => log('tick4'));
  setTimeout(() => server.close((e) => {
    log('closed-' + e);
    server.close((e) => log('again-' + e.code));
  }), 100);
});
