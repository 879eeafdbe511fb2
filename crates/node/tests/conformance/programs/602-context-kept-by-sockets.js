'use strict';
// O6 O9: what a listener of a socket or a server enters stays with the connection or the server.
const { log } = require('./_lib');
const { AsyncLocalStorage } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const net = require('net');
let n = 0;
const server = als.run('listen', () => net.createServer((s) => {
  at('connection'); als.enterWith('conn' + (++n));
  s.on('data', (d) => { at('srv-data-' + d); als.enterWith('d' + d); setTimeout(() => { at('timer'); s.write('r' + d, () => at('written')); }, 10); });
  s.on('end', () => { at('srv-end'); als.enterWith('srv-end'); s.end(); });
  s.on('close', () => at('srv-close'));
}).listen(0, '127.0.0.1', () => { at('listening'); als.enterWith('listening'); als.exit(() => client(1)); }));
function client(k) {
  const c = als.run('c' + k, () => net.connect(server.address().port, '127.0.0.1'));
  let m = 0;
  c.on('connect', () => { at('connect'); als.enterWith('connected'); c.write('1', () => at('c-written')); });
  c.on('ready', () => { at('ready'); });
  c.on('data', (d) => { at('c-data-' + d); als.enterWith('c' + d); if (++m < 3) c.write(String(m + 1)); else als.run('ender', () => c.end()); });
  c.on('end', () => at('c-end'));
  c.on('close', () => { at('c-close'); if (k === 1) setTimeout(() => als.exit(() => client(2)), 20); else server.close(() => at('closed')); });
}
