'use strict';
// H95 H96: bodies of requests: text, bytes, forms, streams; what is written for them, and which are refused.
const { log } = require('./_lib');
const { listen } = require('./_http');
const http = require('http');
const { Readable } = require('stream');
const server = http.createServer((req, res) => {
  const lines = [];
  for (let i = 0; i < req.rawHeaders.length; i += 2) if (req.rawHeaders[i] !== 'host') lines.push(req.rawHeaders[i] + ': ' + req.rawHeaders[i + 1]);
  log(`${req.method} ${req.url} ${lines.join(' | ')}`);
  let body = '';
  req.setEncoding('utf8');
  req.on('data', (d) => { body += d; });
  req.on('end', () => { res.setHeader('Content-Type', 'text/plain'); res.end(body); });
});
listen(server, async (port) => {
  const at = (p) => `http://127.0.0.1:${port}${p}`;
  const send = async (name, init) => {
    try { const r = await fetch(at('/' + name), init); log(`${name} ${r.status} ${JSON.stringify(await r.text())}`); }
    catch (e) { log([name, e.name, e.cause && (e.cause.code || e.cause.message)].join(' ')); }
  };
  await send('text', { method: 'POST', body: 'h\u00e9llo' });
  await send('empty', { method: 'POST', body: '' });
  await send('none', { method: 'POST' });
  await send('bytes', { method: 'PUT', body: Buffer.from([104, 105]) });
  await send('form', { method: 'POST', body: new URLSearchParams([['a b', '1&2'], ['\u00e9', '~*+ ']]) });
  await send('typed', { method: 'POST', body: new URLSearchParams([['a', '1']]), headers: { 'Content-Type': 'text/mine' } });
  await send('stream', { method: 'POST', body: Readable.from([Buffer.from('one'), Buffer.from('two')]), duplex: 'half' });
  await send('sized', { method: 'POST', body: 'four', headers: { 'Content-Length': '4' } });
  await send('patch', { method: 'patch', body: 'x' });
  await send('post', { method: 'post', body: 'x' });
  await send('delete', { method: 'DELETE', body: 'x' });
  await send('options', { method: 'OPTIONS' });
  await send('accept', { headers: { Accept: 'a/b', 'Accept-Language': 'de', 'User-Agent': 'me', 'Accept-Encoding': 'x', 'X-Two': '2', 'x-two': '3' } });
  await send('range', { headers: { Range: 'bytes=0-1' } });
  await send('cache', { headers: { 'If-None-Match': '"a"', Pragma: 'p' } });
  await send('get', { method: 'GET', body: 'x' });
  await send('head', { method: 'HEAD', body: 'x' });
  await send('trace', { method: 'TRACE' });
  await send('odd', { method: 'a b' });
  server.close();
  server.closeAllConnections();
});
