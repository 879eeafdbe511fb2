'use strict';
// N95: a path in a directory that is not there: libuv reports EACCES.
const { log } = require('./_lib');
const net = require('net');
const server = net.createServer();
server.on('error', (e) => {
  log(`${e.code}-${e.syscall}-${e.message}`);
  server.close((e) => log('closed-' + e.code));
});
server.listen('/no/such/directory/s', () => log('never'));
process.nextTick(() => log('tick'));
