'use strict';
// H128: an async listener of requests: it starts inside the event, and its error is an unhandled rejection.
const { log } = require('./_lib');
const http = require('http');

process.on('unhandledRejection', (e) => log('unhandled ' + e.message));
const server = http.createServer(async (req, res) => {
  log('start ' + req.url);
  await null;
  log('later ' + req.url);
  if (req.url === '/bad') {
    setTimeout(() => res.end('late'), 50);
    throw new Error('no ' + req.url);
  }
  res.end('fine');
});
server.on('request', (req) => log('second ' + req.url));
server.listen(0, '127.0.0.1', () => {
  const ask = (path, then) => {
    const req = http.get({ port: server.address().port, host: '127.0.0.1', path, agent: false });
    req.on('response', (res) => res.on('data', (d) => log(path + ' ' + d)));
    req.on('close', () => setTimeout(then, 50));
  };
  ask('/good', () => ask('/bad', () => server.close(() => log('closed'))));
});
