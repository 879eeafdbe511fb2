'use strict';
// N160: the idle time of a socket: zero stops the timer, what is no time is refused, what is too long is cut.
const net = require('net');
const http = require('http');
const { log } = require('./_lib');
process.on('warning', (w) => log(w.name + ': ' + w.message.replace('\n', ' / ')));
const attempt = (name, set) => {
  try { set(); log(name + ' fine'); } catch (e) { log(name + ' ' + e.name + ' ' + e.code + ' ' + e.message); }
};
const server = net.createServer((s) => {
  s.on('timeout', () => { log('timeout'); s.setTimeout(0); s.end('late'); });
  s.setTimeout(20);
});
server.listen(0, '127.0.0.1', () => {
  const idle = new net.Socket();
  for (const delay of [0, -1, -0.5, 0.5, NaN, Infinity, -Infinity, 2 ** 31 - 1, 2 ** 31, 1e300]) attempt('socket ' + delay, () => idle.setTimeout(delay));
  idle.setTimeout(0);
  idle.destroy();
  const { port } = server.address();
  for (const timeout of [-1, NaN]) attempt('request ' + timeout, () => http.request({ port, timeout }));
  const client = net.connect(port, '127.0.0.1');
  client.on('timeout', () => log('never'));
  client.setTimeout(5);
  client.setTimeout(0);
  client.on('data', (data) => log(String(data)));
  client.on('close', () => {
    const request = http.request({ port, host: '127.0.0.1' });
    request.on('error', () => {});
    attempt('set -2', () => request.setTimeout(-2));
    attempt('set 0', () => request.setTimeout(0));
    request.destroy();
    server.close();
  });
});
