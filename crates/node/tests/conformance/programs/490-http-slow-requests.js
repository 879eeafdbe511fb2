'use strict';
// H37 H41: requests that are too slow: in the head, in the body, after an answer has begun, on a kept connection, with a listener.
const { log } = require('./_lib');
const { listen, raw, show } = require('./_http');
const http = require('http');
const server = http.createServer({ headersTimeout: 150, requestTimeout: 300, connectionsCheckingInterval: 50, keepAliveTimeout: 5000 }, (req, res) => {
  res.sendDate = false;
  log('request' + req.url);
  req.on('error', (e) => log(`error${req.url} ${e.code}`));
  req.on('close', () => log('close' + req.url));
  res.on('close', () => log(`res.close${req.url} ${res.writableFinished}`));
  req.resume();
  if (req.url === '/begun') res.write('begun');
  if (req.url === '/answered' || req.url === '/first') res.end('done');
});
const post = (p) => `POST ${p} HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nab`;
listen(server, (port) => {
  const run = (bytes, then) => { const c = raw(port, bytes, (t) => { log(show(t)); then(); }); return c; };
  run('', () => run('GET / HT', () => run(post('/body'), () => run(post('/begun'), () => run(post('/answered'), () => {
    const kept = run('GET /first HTTP/1.1\r\nHost: h\r\n\r\n', () => {
      server.on('clientError', (e, socket) => { log(`clientError ${e.code} ${socket.writable}`); socket.end('HTTP/1.1 400 Mine\r\n\r\n'); });
      run('GET /heard', () => server.close(() => log('closed')));
    });
    setTimeout(() => kept.write('GET /sec'), 500);
  })))));
});
