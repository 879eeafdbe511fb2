'use strict';
// H3 H15 H17 H25 H31: one pipeline of a GET, an expectation with a body, a HEAD with a written body, trailers, and an upgrade with bytes behind it.
const { log } = require('./_lib');
const { listen, raw, show } = require('./_http');
const http = require('http');
const server = http.createServer((req, res) => {
  const name = req.method + req.url;
  log('request ' + name);
  process.nextTick(() => log('tick ' + name));
  Promise.resolve().then(() => log('promise ' + name));
  for (const e of ['end', 'close']) req.on(e, () => log('req.' + e + ' ' + name));
  for (const e of ['prefinish', 'finish', 'close']) res.on(e, () => log('res.' + e + ' ' + name));
  if (req.url === '/slow') return void setTimeout(() => { req.resume(); res.end('slow'); }, 20);
  if (req.url === '/trailers') {
    res.setHeader('Trailer', 'X-Sum');
    res.write('a');
    res.addTrailers({ 'X-Sum': '1' });
    req.resume();
    return void res.end('b');
  }
  let size = 0;
  req.on('data', (d) => { size += d.length; log('data ' + name + ' ' + d.length); });
  req.on('end', () => res.end('size ' + size));
});
server.on('checkExpectation', (req, res) => { log('expectation ' + req.headers.expect); res.statusCode = 417; res.end(); });
server.on('upgrade', (req, socket, head) => { log('upgrade ' + req.url + ' ' + head.toString()); socket.end('bye'); });
listen(server, (port) => {
  const first = 'GET /slow HTTP/1.1\r\nHost: h\r\n\r\n'
    + 'POST /body HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nX-T: 1\r\n\r\n'
    + 'HEAD /head HTTP/1.1\r\nHost: h\r\n\r\n'
    + 'PUT /other HTTP/1.1\r\nHost: h\r\nExpect: tea\r\nContent-Length: 2\r\n\r\nxy'
    + 'GET /trailers HTTP/1.1\r\nHost: h\r\n\r\n';
  const c = raw(port, first, (got) => { log(show(got)); server.close(); });
  let isSent = false;
  c.on('more', (got) => {
    if (isSent || !got.endsWith('X-Sum: 1\r\n\r\n')) return;
    isSent = true;
    setTimeout(() => { log('again'); c.write('GET /up HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhead'); }, 20);
  });
});
