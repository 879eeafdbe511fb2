'use strict';
// H30 H33 H34: the state of a response while it is written, corked, ended, ended again, and after its peer has gone.
const { log } = require('./_lib');
const { listen, raw, show } = require('./_http');
const http = require('http');
const server = http.createServer((req, res) => {
  const state = (what) => log(`${what} ended-${res.writableEnded} finished-${res.writableFinished} corked-${res.writableCorked} destroyed-${res.destroyed} sent-${res.headersSent} drain-${res.writableNeedDrain}`);
  res.sendDate = false;
  state('new');
  res.cork();
  res.write('a');
  state('corked');
  res.cork();
  res.uncork();
  res.write('b');
  res.uncork();
  state('uncorked');
  const code = (e) => (e ? e.code : 'ok');
  res.on('prefinish', () => state('prefinish'));
  res.on('finish', () => { state('finish'); res.end((e) => log('in-finish ' + code(e))); });
  res.on('close', () => { state('close'); log('late ' + res.write('x', (e) => log('late.cb ' + code(e)))); res.end('y', (e) => log('late.end ' + code(e))); });
  res.on('error', (e) => log('error ' + code(e)));
  if (req.url === '/ends') {
    res.end('c', (e) => log('first ' + code(e)));
    state('ended');
    res.end((e) => log('second ' + code(e)));
    res.end('d', (e) => log('third ' + code(e)));
    log('write ' + res.write('e', (e) => log('fourth ' + code(e))));
    state('after');
  } else {
    log('big ' + res.write(Buffer.alloc(80000)));
    state('full');
    res.on('drain', () => { state('drain'); res.end(); });
  }
  process.nextTick(() => state('tick'));
});
listen(server, (port) => {
  const get = (p) => `GET ${p} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`;
  raw(port, get('/ends'), (t) => { log(show(t)); raw(port, get('/big'), (u) => { log(String(u.length)); server.close(); }); });
});
