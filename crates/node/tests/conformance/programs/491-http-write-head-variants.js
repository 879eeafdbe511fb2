'use strict';
// H20 H21 H22 H23: the forms of writeHead, what they do to headers set before, and the bytes.
const { log } = require('./_lib');
const { listen, raw, show } = require('./_http');
const http = require('http');
const cases = {
  '/code': (res) => res.writeHead(201),
  '/reason': (res) => res.writeHead(200, 'Fine'),
  '/map': (res) => res.writeHead(200, { 'X-A': '1', 'x-b': ['2', '3'], 'Content-Type': 'text/plain' }),
  '/both': (res) => res.writeHead(404, 'Gone Away', { 'X-A': 1 }),
  '/flat': (res) => res.writeHead(200, ['X-A', '1', 'X-A', '2', 'x-c', '3']),
  '/merged': (res) => { res.setHeader('X-A', 'old'); res.setHeader('X-B', 'kept'); res.writeHead(200, { 'x-a': 'new', 'X-C': 'c' }); },
  '/merged-flat': (res) => { res.setHeader('X-A', 'old'); res.setHeader('X-B', 'kept'); res.writeHead(200, ['x-a', '1', 'x-a', '2']); },
  '/length': (res) => res.writeHead(200, { 'Content-Length': 4 }),
  '/chunked': (res) => res.writeHead(200, { 'Transfer-Encoding': 'chunked' }),
  '/close': (res) => res.writeHead(200, { Connection: 'Close, x' }),
  '/unknown': (res) => res.writeHead(599),
  '/empty-reason': (res) => { res.statusMessage = 'set before'; res.writeHead(500); },
  '/date': (res) => { res.sendDate = false; res.writeHead(200, { Date: 'mine', Trailer: 'x' }); },
  '/keep': (res) => res.writeHead(200, { 'Keep-Alive': 'mine' }),
  '/204': (res) => res.writeHead(204, { 'Content-Length': 4 }),
  '/set-cookie': (res) => { res.setHeader('Set-Cookie', ['a=1', 'b=2']); res.appendHeader('set-cookie', 'c=3'); res.writeHead(200, { Cookie: ['a', 'b'] }); },
};
const server = http.createServer((req, res) => {
  res.sendDate = false;
  const chained = cases[req.url](res);
  log(`${req.url} sent-${res.headersSent} chained-${chained === undefined || chained === res} names-${res.getHeaderNames().join()}`);
  res.end('body');
});
listen(server, (port) => {
  const paths = Object.keys(cases);
  const next = () => {
    const path = paths.shift();
    if (!path) return void server.close();
    const c = raw(port, `GET ${path} HTTP/1.1\r\nHost: h\r\n\r\n`, (t) => { log(show(t)); next(); });
    c.on('more', () => setTimeout(() => c.end(), 30));
  };
  next();
});
