'use strict';
// H17 H18 H34 H51: four pipelined requests that are answered backwards and in pieces; then one of three answers is destroyed.
const { log } = require('./_lib');
const { listen, raw, show } = require('./_http');
const http = require('http');
const server = http.createServer((req, res) => {
  res.sendDate = false;
  const n = Number(req.url.slice(2));
  const name = req.url.slice(1);
  log(`request ${name} socket-${res.socket !== null}`);
  res.on('socket', () => log('socket ' + name));
  res.on('drain', () => log('drain ' + name));
  res.on('finish', () => log('finish ' + name));
  res.on('close', () => log(`close ${name} finished-${res.writableFinished}`));
  req.on('close', () => log(`req.close ${name} aborted-${req.aborted}`));
  req.on('error', (e) => log(`req.error ${name} ${e.code}`));
  setTimeout(() => {
    if (name === 'b2') { log('destroy ' + name); res.destroy(); return; }
    log(`write ${name} ${res.write(name)}`);
    setTimeout(() => { log('end ' + name); res.end('.', () => log('callback ' + name)); }, n === 3 ? 250 : 30);
  }, 100 * (5 - n));
});
const get = (p) => `GET ${p} HTTP/1.1\r\nHost: h\r\n\r\n`;
listen(server, (port) => {
  const c = raw(port, ['/a1', '/a2', '/a3', '/a4'].map(get).join(''), (text) => {
    log(show(text));
    const d = raw(port, ['/b1', '/b2', '/b3'].map(get).join(''), (t) => { log(show(t)); server.close(() => log('closed')); });
    setTimeout(() => d.destroy(), 900);
  });
  c.on('more', (got) => { if (got.includes('a4\r\n1\r\n.\r\n0')) setTimeout(() => c.end(), 50); });
});
