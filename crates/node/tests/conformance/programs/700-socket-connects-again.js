'use strict';
// N98 N149: one socket connects, closes and connects again: in 'close', on a tick, later.
const { log } = require('./_lib');
const net = require('net');
let served = 0;
const server = net.createServer((c) => c.end('hello' + ++served));
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  const c = new net.Socket();
  const connect = () => {
    c.connect(port, '127.0.0.1', () => log('callback' + served));
    log(`connecting-${c.connecting} destroyed-${c.destroyed} readable-${c.readable} writable-${c.writable}`);
  };
  const ways = [connect, () => process.nextTick(connect), () => setImmediate(connect), () => setTimeout(connect, 20)];
  c.on('connect', () => log('connect'));
  c.on('ready', () => log('ready'));
  c.on('data', (d) => log('data-' + d));
  c.on('end', () => log('end'));
  c.on('finish', () => log('finish'));
  c.on('close', (bad) => {
    log(`close-${bad} destroyed-${c.destroyed} read-${c.bytesRead}`);
    const way = ways.shift();
    if (way) way();
    else server.close(() => log('server-closed'));
  });
  connect();
});
