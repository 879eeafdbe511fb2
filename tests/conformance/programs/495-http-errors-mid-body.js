'use strict';
// H51 H52 H65: streams that fail in the middle of a body: the source of an answer, the source of a request, either message.
const { log } = require('./_lib');
const { listen } = require('./_http');
const http = require('http');
const { Readable, pipeline } = require('stream');
const failing = () => { let n = 0; return new Readable({ read() { n++; if (n <= 2) setTimeout(() => this.push('part' + n), 10); else this.destroy(Object.assign(new Error('broken'), { code: 'EMINE' })); } }); };
const server = http.createServer((req, res) => {
  const name = 'server' + req.url;
  req.on('error', (e) => log(`${name} req.error ${e.code}`));
  req.on('close', () => log(`${name} req.close ${req.complete}`));
  res.on('error', (e) => log(`${name} res.error ${e.code}`));
  res.on('close', () => log(`${name} res.close ${res.writableFinished}`));
  if (req.url === '/pipeline') pipeline(failing(), res, (e) => log(`${name} pipeline ${e.code}`));
  else if (req.url === '/pipe') { const s = failing(); s.on('error', (e) => { log(`${name} source ${e.code}`); setTimeout(() => res.end('!'), 20); }); s.pipe(res); }
  else if (req.url === '/res') { res.write('half'); setTimeout(() => res.destroy(new Error('mine')), 30); req.resume(); }
  else if (req.url === '/req') { req.on('data', (d) => { log(`${name} data ${d}`); req.destroy(new Error('mine')); }); }
  else { req.on('data', (d) => log(`${name} data ${d}`)); req.on('end', () => res.end('ok')); }
});
listen(server, (port) => {
  const ask = (path, body, then) => {
    const req = http.request({ port, host: '127.0.0.1', agent: false, path, method: 'POST' }, (res) => {
      log('response' + path);
      res.on('data', (d) => log(`data${path} ${d}`));
      res.on('error', (e) => log(`res.error${path} ${e.code}`));
      res.on('end', () => log('end' + path));
      res.on('close', () => log(`res.close${path} ${res.complete}`));
    });
    req.on('error', (e) => log(`error${path} ${e.code}`));
    req.on('close', () => { log('close' + path); setTimeout(then, 80); });
    body(req);
  };
  const end = (r) => r.end();
  ask('/pipeline', end, () => ask('/pipe', end, () => ask('/res', end, () => ask('/req', (r) => r.write('some'), () =>
    ask('/upload', (r) => pipeline(failing(), r, (e) => log('upload ' + e.code)), () => server.close(() => log('closed')))))));
});
