'use strict';
// N103: a poll phase delivers up to 32 datagrams, with a drain after each.
const { log } = require('./_lib');
const dgram = require('dgram');
const r = dgram.createSocket('udp4');
const s = dgram.createSocket('udp4');
let n = 0;
process.on('uncaughtException', (e) => log('uncaught ' + e.message));
r.on('message', (m) => {
  log('m' + m);
  process.nextTick(() => log('tick'));
  Promise.resolve().then(() => log('promise'));
  if (++n === 70) { r.close(); s.close(); }
  if (n === 5) throw new Error('fifth');
});
r.bind(0, '127.0.0.1', () => s.bind(0, '127.0.0.1', () => {
  const { port } = r.address();
  for (let i = 0; i < 70; i++) s.send(String(i), port, '127.0.0.1');
  let left = 5;
  const immediate = () => { log('immediate'); if (--left > 0) setImmediate(immediate); };
  setImmediate(immediate);
}));
