'use strict';
// H46 H48 H77: upgrades that are refused: by an answer, by a closed socket, by a client that does not listen; CONNECT with a 407.
const { log } = require('./_lib');
const { listen } = require('./_http');
const http = require('http');
const server = http.createServer((req, res) => {
  log(`request${req.url} upgrade-${req.upgrade}`);
  res.writeHead(426, { Upgrade: 'other', Connection: 'Upgrade' });
  res.end('no');
});
const hear = () => server.on('upgrade', (req, socket, head) => {
  log(`upgrade${req.url} ${req.headers.upgrade} ${head.length}`);
  socket.on('error', (e) => log('socket.error ' + e.code));
  socket.on('close', () => log('socket.close' + req.url));
  socket.resume();
  if (req.url === '/destroyed') socket.destroy();
  else if (req.url === '/answered') socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno');
  else socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nfirst');
});
server.on('connect', (req, socket) => { log('connect ' + req.url); socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 5\r\n\r\nwho??'); });
listen(server, (port) => {
  const ask = (path, options, then) => {
    const req = http.request({ port, host: '127.0.0.1', agent: false, path, headers: { Connection: 'Upgrade', Upgrade: 'x' }, ...options });
    req.on('response', (res) => {
      log(`response${path} ${res.statusCode} ${res.headers.connection} upgrade-${res.upgrade}`);
      res.on('data', (d) => log('data' + path + ' ' + d));
      res.on('end', () => log('end' + path));
    });
    if (path === '/heard') req.on('upgrade', (res, socket, head) => { log(`client.upgrade ${res.statusCode} ${head}`); socket.end(); });
    req.on('connect', (res, socket, head) => { log(`client.connect ${res.statusCode} ${head}`); socket.destroy(); });
    req.on('error', (e) => log(`error${path} ${e.code}`));
    req.on('close', () => { log('close' + path); setTimeout(then, 60); });
    req.end();
  };
  ask('/unheard', {}, () => { hear(); ask('/destroyed', {}, () => ask('/answered', {}, () => ask('/deaf', {}, () => ask('/heard', {}, () =>
    ask('proxy:1', { method: 'CONNECT', headers: {} }, () => server.close(() => log('closed'))))))); });
});
