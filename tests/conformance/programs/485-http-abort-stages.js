'use strict';
// H52 H67 H68: a signal aborted at each stage of a request with a body, seen from both ends.
const { log } = require('./_lib');
const { listen } = require('./_http');
const http = require('http');
let abort = () => {};
const server = http.createServer((req, res) => {
  const name = 'server' + req.url;
  log(name);
  req.on('data', (d) => { log(name + ' data-' + d); if (req.url === '/written') abort(); });
  req.on('end', () => log(name + ' end'));
  req.on('aborted', () => log(name + ' aborted'));
  req.on('error', (e) => log(name + ' error-' + e.code));
  req.on('close', () => log(name + ' close'));
  res.on('finish', () => log(name + ' finish'));
  res.on('close', () => log(name + ' res.close-' + res.writableFinished));
  if (req.url === '/head') abort();
  if (req.url === '/response' || req.url === '/body') { res.write('part'); }
  if (req.url === '/done') req.on('end', () => res.end('all'));
});
listen(server, (port) => {
  const stages = ['/before', '/call', '/socket', '/head', '/written', '/response', '/body', '/done'];
  const next = () => {
    const path = stages.shift();
    if (!path) { server.close(() => log('closed')); return; }
    const controller = new AbortController();
    abort = () => setTimeout(() => controller.abort(), 60);
    if (path === '/before') controller.abort();
    const req = http.request({ port, host: '127.0.0.1', agent: false, path, method: 'POST', signal: controller.signal });
    req.on('error', (e) => log(path + ' error ' + e.name + ' ' + e.code));
    req.on('finish', () => log(path + ' finish'));
    req.on('close', () => { log(path + ' close'); setTimeout(next, 80); });
    req.on('socket', (s) => {
      log(path + ' socket');
      if (path === '/socket') controller.abort();
      s.on('close', (bad) => log(path + ' socket.close-' + bad));
    });
    req.on('response', (res) => {
      log(path + ' response');
      if (path === '/response') controller.abort();
      res.on('data', (d) => { log(path + ' data-' + d); if (path === '/body') controller.abort(); });
      res.on('aborted', () => log(path + ' res.aborted'));
      res.on('error', (e) => log(path + ' res.error ' + e.code));
      res.on('end', () => { log(path + ' end'); if (path === '/done') controller.abort(); });
      res.on('close', () => log(path + ' res.close'));
    });
    if (path === '/head') req.flushHeaders();
    else if (path === '/written') req.write('part');
    else req.end('whole');
    if (path === '/call') controller.abort();
    log(path + ' destroyed-' + req.destroyed);
  };
  next();
});
