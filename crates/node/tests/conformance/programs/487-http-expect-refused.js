'use strict';
// H15 H16 H66 H76: a client that expects 100: granted, refused with a body unread, answered early, and another expectation.
const { log } = require('./_lib');
const { listen } = require('./_http');
const http = require('http');
const server = http.createServer((req, res) => {
  log('request' + req.url);
  req.on('data', (d) => log('data' + req.url + ' ' + d));
  req.on('end', () => { log('end' + req.url); res.end('got'); });
});
server.on('checkContinue', (req, res) => {
  log('check' + req.url);
  req.on('close', () => log('req.close' + req.url));
  if (req.url === '/refused') { res.writeHead(413, { Connection: 'close' }); res.end('too much'); return; }
  if (req.url === '/kept') { res.statusCode = 401; res.end('who'); return; }
  if (req.url === '/twice') { res.writeContinue(); res.writeContinue(); }
  else res.writeContinue(() => log('told' + req.url));
  log('sent-' + res.headersSent);
  server.emit('request', req, res);
});
server.on('checkExpectation', (req, res) => { log('expectation ' + req.headers.expect); res.writeHead(417); res.end(); });
listen(server, (port) => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const ask = (path, expect, then) => {
    const req = http.request({ port, host: '127.0.0.1', agent, path, method: 'PUT', headers: { Expect: expect, 'Content-Length': 4 } });
    log('sent-' + req.headersSent);
    req.on('continue', () => { log('continue' + path); if (!req.writableEnded) req.end('body'); });
    req.on('information', (i) => log('information' + path + ' ' + i.statusCode));
    req.on('response', (res) => {
      log(`response${path} ${res.statusCode} ${res.headers.connection}`);
      res.on('data', (d) => log('body' + path + ' ' + d));
      res.on('end', () => { log('res.end' + path); if (!req.writableEnded) req.end('late'); });
    });
    req.on('error', (e) => log('error' + path + ' ' + e.code));
    req.on('close', () => { log('close' + path); setTimeout(then, 60); });
  };
  ask('/granted', '100-continue', () => ask('/twice', '100-Continue', () => ask('/refused', '100-continue', () =>
    ask('/kept', '100-continue', () => ask('/tea', 'tea', () => { agent.destroy(); server.close(() => log('closed')); server.closeAllConnections(); })))));
});
