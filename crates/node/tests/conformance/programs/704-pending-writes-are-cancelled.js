'use strict';
// N98 N150: what waits for a destroyed socket is cancelled right before its 'close'.
const { log, tmp } = require('./_lib');
const net = require('net');
const peers = [];
const server = net.createServer((c) => { c.on('error', () => {}); c.pause(); peers.push(c); });
const why = (name) => (e) => { log(`${name}-${e && e.code}-${e && e.message}`); process.nextTick(() => log(name + '.tick')); };
const errors = [undefined, Object.assign(new Error('own'), { code: 'OWN' })];
const round = () => {
  if (!errors.length) { peers.forEach((c) => c.destroy()); return server.close(() => log('server-closed')); }
  const c = net.connect(tmp('s'), () => {
    c.write(Buffer.alloc(8 << 20), why('large'));
    c.write('x', why('small'));
    c.end(why('end'));
    c.on('finish', () => log('never'));
    c.on('error', (e) => log('error-' + e.code));
    c.on('close', (bad) => { log('close-' + bad); setImmediate(round); });
    setTimeout(() => {
      c.destroy(errors.shift());
      process.nextTick(() => log('tick'));
      setImmediate(() => log('immediate'));
    }, 50);
  });
};
server.listen(tmp('s'), round);
