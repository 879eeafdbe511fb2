'use strict';
// H22 H26 H27: who keeps the connection: words of the request, words of the answer, versions, and what follows on the wire.
const { log } = require('./_lib');
const { listen, raw, show } = require('./_http');
const http = require('http');
const server = http.createServer((req, res) => {
  res.sendDate = false;
  const q = new URL(req.url, 'http://h').searchParams;
  if (q.get('c')) res.setHeader('Connection', q.get('c'));
  if (q.get('k')) res.setHeader('Keep-Alive', q.get('k'));
  if (q.get('l')) res.setHeader('Content-Length', q.get('l'));
  if (q.get('r')) res.removeHeader(q.get('r'));
  if (q.get('s')) res.shouldKeepAlive = q.get('s') === '1';
  if (q.get('w')) res.write('o');
  res.end(q.get('w') ? 'k' : 'ok');
});
const list = [
  ['/', '1.1', ''], ['/', '1.1', 'Connection: close'], ['/', '1.1', 'Connection: foo, Close'], ['/', '1.1', 'Connection: closed'], ['/', '1.1', 'Connection: keep-alive, close'],
  ['/', '1.1', 'Proxy-Connection: close'], ['/', '1.0', ''], ['/', '1.0', 'Connection: keep-alive'], ['/?l=2', '1.0', 'Connection: Keep-Alive'], ['/?w=1', '1.0', 'Connection: keep-alive'],
  ['/?c=close', '1.1', ''], ['/?c=x,close', '1.1', ''], ['/?c=keep-alive', '1.1', 'Connection: close'], ['/?c=upgrade', '1.1', ''], ['/?k=x', '1.1', ''], ['/?r=connection', '1.1', ''],
  ['/?r=transfer-encoding&w=1', '1.1', ''], ['/?r=content-length', '1.1', ''], ['/?s=0', '1.1', ''], ['/?s=1&l=2', '1.0', ''], ['/?c=keep-alive&l=2', '1.0', ''], ['/', '2.0', ''], ['/', '0.9', 'Connection: keep-alive'],
];
listen(server, (port) => {
  const next = () => {
    const item = list.shift();
    if (!item) { server.close(); return; }
    const [path, version, line] = item;
    let mine = false;
    const c = raw(port, `GET ${path} HTTP/${version}\r\nHost: h\r\n${line ? line + '\r\n' : ''}\r\n`, (t) => { log(`${path} ${version} ${line} ${mine ? 'kept' : 'closed'} ${show(t)}`); next(); });
    const timer = setTimeout(() => { mine = true; c.end(); }, 120);
    c.on('end', () => clearTimeout(timer));
  };
  next();
});
