'use strict';
// H127: a request that middleware changes and extends; the status and the headers in one call.
const { log } = require('./_lib');
const http = require('http');

const stack = [];
const use = (route, handle) => stack.push({ route, handle });
function next(req, res, index) {
  const layer = stack[index];
  if (!layer) return res.writeHead(404, { 'Content-Type': 'text/plain' }).end('no ' + req.url);
  const go = () => next(req, res, index + 1);
  if (!req.url.startsWith(layer.route)) return go();
  const before = req.url;
  req.url = before.slice(layer.route.length) || '/';
  layer.handle(req, res, () => { req.url = before; go(); });
}

use('', (req, res, go) => { req.user = 'Ada'; req.steps = []; go(); });
use('/api', (req, res, go) => { req.steps.push(req.url); req.url = '/changed'; req.steps.push(req.url); go(); });
use('/api/me', (req, res) => {
  const text = JSON.stringify({ user: req.user, url: req.url, steps: req.steps });
  res.setHeader('Content-Type', 'application/json; charset=utf-8');
  res.setHeader('Content-Length', Buffer.byteLength(text));
  res.writeHead(201).end(text);
});

const server = http.createServer((req, res) => {
  next(req, res, 0);
  res.on('close', () => log(`close ${req.url} ${req.user}`));
});
server.listen(0, '127.0.0.1', () => {
  const paths = ['/api/me', '/api/other', '/'];
  const ask = () => {
    const path = paths.shift();
    if (!path) return server.close(function () { log('closed ' + this.listening); });
    const req = http.get({ port: server.address().port, host: '127.0.0.1', path, agent: false });
    req.once('response', function (res) {
      log(`${this.path} ${res.statusCode} ${res.headers['content-type']} ${res.headers['content-length']}`);
      res.on('data', (d) => log(String(d)));
    });
    req.on('close', () => setTimeout(ask, 50));
  };
  ask();
});
