'use strict';
// H61: a request that ends when its response has closed still finishes if nothing is left to be sent.
const { log } = require('./_lib');
const http = require('http');
const server = http.createServer((req, res) => { res.setHeader('Connection', 'close'); res.end('hi'); });
const cases = [
  ['length', { method: 'POST', headers: { 'Content-Length': 0 } }, (req) => req.end()],
  ['get', {}, (req) => req.end()],
  ['chunked', { method: 'POST' }, (req) => req.end()],
  ['data', { method: 'POST', headers: { 'Content-Length': 4 } }, (req) => req.end('late')],
  ['twice', {}, (req) => { req.end(); req.end(); }],
];
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address();
  const next = () => {
    const [name, options, end] = cases.shift() || [];
    if (!name) return inside(port);
    const req = http.request({ port, host: '127.0.0.1', agent: false, ...options }, (res) => { res.resume(); res.on('close', () => log(name + ' res.close')); });
    for (const event of ['prefinish', 'finish']) req.on(event, () => log(`${name} ${event}`));
    req.on('error', (e) => log(`${name} error ${e.code}`));
    req.on('close', () => {
      log(name + ' close');
      setImmediate(() => {
        end(req);
        log(`${name} ended-${req.writableEnded}`);
        req.on('finish', () => log(name + ' late'));
        setImmediate(() => setImmediate(next));
      });
    });
    req.flushHeaders();
  };
  next();
});
function inside(port) {
  const req = http.request({ port, host: '127.0.0.1', agent: false }, (res) => res.resume());
  req.on('finish', () => { log('inside finish'); setImmediate(() => server.close(() => log('closed'))); });
  req.on('close', () => { log('inside close'); req.end(); log('inside sync'); });
  req.flushHeaders();
}
