'use strict';
// H1 H2 H35 H42: the events of a server with several listeners, dropped requests, errors told to listeners, and listening twice.
const { log } = require('./_lib');
const { listen, raw, show } = require('./_http');
const http = require('http');
const server = http.createServer();
server.maxRequestsPerSocket = 2;
server.on('connection', (s) => { log('connection'); process.nextTick(() => log('connection.tick')); s.on('close', (bad) => log('socket.close-' + bad)); });
server.on('request', (req, res) => { log('first' + req.url); process.nextTick(() => log('tick' + req.url)); res.sendDate = false; });
server.on('request', (req, res) => { log('second' + req.url); if (req.url === '/twice') server.removeAllListeners('dropRequest'); res.end(req.url); });
server.once('request', (req) => log('once' + req.url));
server.on('dropRequest', (req, s) => log(`drop${req.url} ${s.destroyed}`));
server.on('listening', () => log('listening'));
server.on('close', () => log('close'));
server.on('error', (e) => log('error ' + e.code));
const get = (p) => `GET ${p} HTTP/1.1\r\nHost: h\r\n\r\n`;
listen(server, (port) => {
  try { server.listen(0); } catch (e) { log(e.code); }
  const c = raw(port, get('/1') + get('/2') + get('/3'), (t) => {
    log(show(t));
    server.maxRequestsPerSocket = 0;
    server.on('clientError', (e, s) => { log(`clientError ${e.code} ${e.bytesParsed} ${e.rawPacket.length} ${s.writable}`); s.end('HTTP/1.1 400 Mine\r\n\r\n'); });
    raw(port, get('/a') + 'BAD\r\n\r\n', (u) => {
      log(show(u));
      raw(port, 'POST /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n', (v) => {
        log(show(v));
        server.close((e) => { log('closed ' + (e ? e.code : 'ok')); server.close((x) => log('again ' + x.code)); });
      });
    });
  });
  setTimeout(() => c.end(), 150);
});
