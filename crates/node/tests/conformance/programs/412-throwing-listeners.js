'use strict';
// N76: what a listener of a server or of a socket throws stops neither.
const { log, tmp } = require('./_lib');
const net = require('net');
let a;
let b;
let count = 0;
process.on('uncaughtException', (e) => {
  log('uncaught ' + e.message);
  if (e.message === 'in connect') setImmediate(() => b.write('1'));
});
const server = net.createServer((s) => {
  log('connection ' + (++count));
  s.on('error', () => {});
  s.on('data', (d) => {
    log('data ' + d);
    process.nextTick(() => log('tick ' + d));
    if (String(d) === '2') setImmediate(() => b.end('3'));
    if (String(d) !== '1') return;
    setImmediate(() => b.write('2'));
    throw new Error('in data');
  });
  s.on('end', () => { log('end'); a.destroy(); server.close(); });
  if (count === 1) throw new Error('in connection');
});
server.on('close', () => log('closed'));
server.listen(tmp('s'), () => {
  a = net.connect(tmp('s'));
  a.on('connect', () => {
    log('a connect');
    setImmediate(() => {
      b = net.connect(tmp('s'));
      b.on('connect', () => { log('b connect'); throw new Error('in connect'); });
      b.on('ready', () => log('never'));
    });
  });
});
