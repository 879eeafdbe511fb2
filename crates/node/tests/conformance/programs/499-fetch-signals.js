'use strict';
// H93: signals of fetch: any, timeout, reasons, one signal for several requests, aborted after the end, before a redirection is followed.
const { log } = require('./_lib');
const { listen } = require('./_http');
const http = require('http');
let gone = 0;
const server = http.createServer((req, res) => {
  res.on('close', () => { if (!res.writableFinished) gone++; });
  if (req.url === '/quick') return void res.end('quick');
  if (req.url === '/body') { res.write('a'); setTimeout(() => res.write('b'), 100); return; }
  if (req.url === '/to') { res.writeHead(302, { Location: '/never' }); return void setTimeout(() => res.end(), 30); }
});
listen(server, async (port) => {
  const at = (p) => `http://127.0.0.1:${port}${p}`;
  const tell = (name, p) => p.then((v) => log(name + ' ' + v), (e) => log(`${name} ${e.name} ${e.message}${e.code ? ' ' + e.code : ''}`));
  const read = (p, signal) => fetch(at(p), { signal }).then((r) => r.text());
  const wait = (ms) => new Promise((r) => setTimeout(r, ms));
  await read('/quick');
  const a = new AbortController();
  const b = new AbortController();
  const any = AbortSignal.any([a.signal, b.signal]);
  setTimeout(() => b.abort(new TypeError('b says no')), 250);
  await Promise.all([tell('any', read('/never', any)), tell('body', read('/body', any)), tell('quick', read('/quick', any))]);
  log(`any ${any.aborted} a ${a.signal.aborted}`);
  await tell('late', read('/quick', any));
  await tell('timeout', read('/never', AbortSignal.timeout(60)));
  await tell('timeout-body', read('/body', AbortSignal.timeout(300)));
  await tell('already', read('/quick', AbortSignal.abort()));
  await tell('reason', read('/quick', AbortSignal.abort(new Error('mine'))));
  await tell('mixed', read('/never', AbortSignal.any([a.signal, AbortSignal.timeout(40)])));
  const c = new AbortController();
  const r = await fetch(at('/quick'), { signal: c.signal });
  log('text ' + await r.text());
  c.abort();
  log('after ' + c.signal.aborted);
  const d = new AbortController();
  setTimeout(() => d.abort(), 300);
  await tell('redirect', read('/to', d.signal));
  const e = new AbortController();
  const s = await fetch(at('/body'), { signal: e.signal });
  const seen = [];
  try { for await (const part of s.body) { seen.push(Buffer.from(part).toString()); if (seen.length === 2) e.abort(); } } catch (x) { seen.push(x.name); }
  log('parts ' + seen.join());
  const f = new AbortController();
  const t = await fetch(at('/body'), { signal: f.signal });
  f.abort();
  await t.text().catch((x) => log('unread ' + x.name));
  await wait(100);
  log('gone ' + gone);
  server.close();
  server.closeAllConnections();
});
