'use strict';
// H29 H74: what is refused at the call, by code; the message stays as it was.
const { log } = require('./_lib');
const { listen, raw, show } = require('./_http');
const http = require('http');
const attempt = (name, f) => { try { f(); log(name + ' ok'); } catch (e) { log(`${name} ${e.name} ${e.code}`); } };
const server = http.createServer((req, res) => {
  res.sendDate = false;
  for (const n of ['', 'a b', 'a:', 'a\r', 'é', '(', 'a@']) attempt('name-' + JSON.stringify(n), () => res.setHeader(n, 'x'));
  for (const v of ['a\nb', 'a\rb', '\u0000', '\u007f', 'ā', '\u00ff', '\t', '']) attempt('value-' + JSON.stringify(v), () => res.setHeader('X-V', v));
  for (const v of ['ok', 'a\nb']) attempt('append-' + JSON.stringify(v), () => res.appendHeader('X-W', v));
  attempt('list', () => res.setHeader('X-L', ['a', 'b\n']));
  for (const c of [99, 100, 999, 1000, 0]) attempt('status-' + c, () => { if (c === 100 || c === 999) { http.STATUS_CODES[c]; } else res.writeHead(c); });
  attempt('reason', () => res.writeHead(200, 'a\nb'));
  res.statusMessage = 'Mine';
  attempt('head-name', () => res.writeHead(200, { 'a b': '1' }));
  attempt('trailers', () => res.addTrailers({ 'X T': '1' }));
  attempt('trailer-value', () => res.addTrailers({ 'X-T': 'a\n' }));
  attempt('hints', () => res.writeEarlyHints({ link: 'nonsense' }));
  attempt('get', () => log('value ' + JSON.stringify(res.getHeader('x-v')) + ' ' + JSON.stringify(res.getHeader('X-W')) + ' ' + res.hasHeader('x-l')));
  res.write('a');
  attempt('set-late', () => res.setHeader('X-A', '1'));
  attempt('remove-late', () => res.removeHeader('X-A'));
  attempt('append-late', () => res.appendHeader('X-A', '1'));
  attempt('head-late', () => res.writeHead(200));
  attempt('flush-late', () => res.flushHeaders());
  res.end();
});
listen(server, (port) => {
  const request = (o) => { const r = http.request({ port, host: '127.0.0.1', agent: false, ...o }); r.on('error', () => {}); r.destroy(); };
  for (const method of ['GE T', 'get', '', 'a\n', 'X-MINE']) attempt('method-' + JSON.stringify(method), () => request({ method }));
  for (const path of ['/a b', '/\n', '/é', '/ā', '/%20', '*', 'x', '']) attempt('path-' + JSON.stringify(path), () => request({ path }));
  for (const headers of [{ 'a b': '1' }, { A: 'x\n' }, { Host: 'ok' }]) attempt('headers-' + JSON.stringify(headers), () => request({ headers }));
  attempt('validate', () => http.validateHeaderName('a b'));
  attempt('validate-value', () => http.validateHeaderValue('a', '\u0001'));
  const c = raw(port, 'GET / HTTP/1.1\r\nHost: h\r\n\r\n', (t) => { log(show(t)); server.close(); });
  c.on('more', (got) => { if (got.endsWith('0\r\n\r\n')) c.end(); });
});
