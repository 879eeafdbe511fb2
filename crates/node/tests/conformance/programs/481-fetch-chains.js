'use strict';
// H93 H94 H96: chains of redirections, aborted at each link and in the body; connections after errors.
const { log } = require('./_lib');
const { listen } = require('./_http');
const http = require('http');
const sleep = (ms) => new Promise((r) => setTimeout(r, ms));
let connections = 0;
let heard = () => {};
const server = http.createServer((req, res) => {
  const [, kind, n] = req.url.split('/');
  log(req.method + ' ' + req.url);
  heard(req.url);
  if (kind === 'chain' && Number(n) > 0) {
    res.writeHead(n % 2 ? 302 : 307, { Location: '/chain/' + (n - 1) + '#f' + n });
    return void setTimeout(() => res.end('moved'), 10);
  }
  if (kind === 'body') { res.write('begin'); return void setTimeout(() => res.end('end'), 200); }
  if (kind === 'cut') { res.writeHead(200, { 'Content-Length': 9 }); res.write('half'); return void setTimeout(() => res.destroy(), 20); }
  if (kind === 'reset') return void req.socket.destroy();
  if (kind === 'bad') { res.setHeader('Location', 'http://[bad'); res.statusCode = 301; return void res.end(); }
  if (kind === 'away') { res.setHeader('Location', 'data:,x'); res.statusCode = 302; return void res.end(); }
  let body = '';
  req.on('data', (d) => { body += d; });
  req.on('end', () => res.end('final ' + req.method + ' ' + body));
});
server.on('connection', () => { connections += 1; });
listen(server, async (port) => {
  const at = (path) => 'http://127.0.0.1:' + port + path;
  const r = await fetch(at('/chain/3#mine'), { method: 'POST', body: 'b' });
  log([r.status, r.redirected, r.url.slice(at('').length), await r.text()].join(' '));
  for (const link of [3, 2, 1, 0]) {
    const c = new AbortController();
    heard = (url) => { if (url === '/chain/' + link) c.abort(); };
    const p = fetch(at('/chain/3'), { signal: c.signal }).then((x) => x.text(), (e) => e.name);
    log('link-' + link + ' ' + await p);
    await sleep(50);
  }
  heard = () => {};
  const c = new AbortController();
  const b = await fetch(at('/body'), { signal: c.signal });
  const reader = b.text().catch((e) => e.message);
  setTimeout(() => c.abort(new Error('mine')), 50);
  log('body ' + await reader + ' ' + b.bodyUsed);
  for (const path of ['/cut', '/reset', '/bad', '/away']) {
    await fetch(at(path)).then((x) => x.text()).then((t) => log(path + ' ' + t), (e) => log([path, e.name, e.message, e.cause && (e.cause.code || e.cause.message)].join(' ')));
    await sleep(50);
  }
  log('one ' + await (await fetch(at('/x'))).text());
  const before = connections;
  await sleep(50);
  log('two ' + await (await fetch(at('/y'))).text() + ' ' + (connections === before));
  server.close();
  server.closeAllConnections();
});
