'use strict';
// H25 H30 H52: the end of an answer that cannot leave: no finish if a last piece was given, also one that is not sent; the head is fixed without one.
const { log } = require('./_lib');
const { listen, raw, show } = require('./_http');
const http = require('http');
const server = http.createServer((req, res) => {
  const state = (what) => log(`${what} sent-${res.headersSent} ended-${res.writableEnded} destroyed-${res.destroyed}`);
  res.sendDate = false;
  for (const event of ['prefinish', 'finish', 'close']) res.on(event, () => log(event));
  res.on('error', (e) => log('error ' + e.code));
  const [kind, last] = req.url.slice(1).split('-');
  if (kind !== 'destroyed') res.flushHeaders();
  if (kind === 'gone') req.socket.destroy();
  if (kind === 'destroyed') res.destroy();
  state('before');
  if (last === 'piece') res.end('ok', (e) => log('callback ' + (e ? e.code : 'ok'))); else res.end((e) => log('callback ' + (e ? e.code : 'ok')));
  state('after');
  setImmediate(() => state('immediate'));
});
const cases = [['HEAD', '/gone-piece'], ['HEAD', '/gone-none'], ['GET', '/gone-piece'], ['GET', '/gone-none'], ['HEAD', '/live-piece'], ['HEAD', '/live-none'],
  ['GET', '/destroyed-piece'], ['GET', '/destroyed-none'], ['HEAD', '/destroyed-none']];
listen(server, (port) => {
  const next = () => {
    const [method, path] = cases.shift() || [];
    if (!method) return void server.close(() => log('closed'));
    log(`${method} ${path}`);
    raw(port, `${method} ${path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`, (text) => { log(show(text)); next(); });
  };
  next();
});
