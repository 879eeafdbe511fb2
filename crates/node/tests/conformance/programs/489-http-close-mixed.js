'use strict';
// H47 H49 H50: close() with an idle, a fresh, a half, a busy and an upgraded connection, and what each of them still may do.
const { log } = require('./_lib');
const { listen, raw } = require('./_http');
const http = require('http');
let busy;
let upgraded;
const server = http.createServer((req, res) => { log('request' + req.url); if (req.url === '/busy') busy = res; else res.end('x'); });
server.on('upgrade', (req, socket) => { upgraded = socket; socket.on('error', () => {}); socket.write('HTTP/1.1 101 S\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n'); });
server.on('close', () => log('server.close'));
listen(server, (port) => {
  const closed = [];
  const peer = (name, bytes) => raw(port, bytes, (t) => { closed.push(name); log(`${name}.closed ${t.split('\r\n')[0]} ${(t.match(/HTTP/g) || []).length}`); });
  const get = (p) => `GET ${p} HTTP/1.1\r\nHost: h\r\n\r\n`;
  peer('idle', get('/idle'));
  const half = peer('half', 'GET /half HTTP/1.1\r\n');
  const fresh = peer('fresh', '');
  const held = peer('busy', get('/busy'));
  const up = peer('up', 'GET /up HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n');
  setTimeout(() => {
    server.getConnections((e, n) => log('connections-' + n));
    log('closing');
    server.close((e) => log('callback-' + (e ? e.code : 'none')));
    log('listening-' + server.listening);
    server.close((e) => log('again-' + (e ? e.code : 'none')));
  }, 300);
  setTimeout(() => { log('-- half'); half.write('Host: h\r\n\r\n'); }, 500);
  setTimeout(() => { log('-- idle'); server.closeIdleConnections(); }, 700);
  setTimeout(() => { log('-- fresh'); fresh.end(); }, 800);
  setTimeout(() => { log('-- busy'); busy.end('y'); held.once('more', () => setTimeout(() => { log('-- all'); server.closeAllConnections(); }, 200)); }, 900);
  setTimeout(() => { server.getConnections((e, n) => log('connections-' + n)); log('-- up'); up.end('bye'); upgraded.end(); }, 1400);
});
