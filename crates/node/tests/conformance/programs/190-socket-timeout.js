'use strict';
// N96 N98: a socket that is idle says so in the timers phase, again after it was active; the timer keeps nothing alive.
const { log } = require('./_lib');
const net = require('net');
const server = net.createServer((s) => {
  s.on('data', (d) => log('s-data-' + d));
  s.on('end', () => log('s-end'));
  s.on('close', () => { log('s-close'); server.close(); });
});
server.listen(0, '127.0.0.1', () => {
  const c = net.connect(server.address().port, '127.0.0.1');
  let count = 0;
  c.setTimeout(60);
  c.on('timeout', () => {
    log('timeout' + ++count);
    process.nextTick(() => log('tick'));
    if (count < 3) c.write('w' + count); else c.end();
  });
  c.on('close', () => log('c-close'));
});
const idle = new net.Socket();
idle.setTimeout(10);
idle.on('timeout', () => log('unconnected'));
const gone = new net.Socket();
gone.setTimeout(10);
gone.on('timeout', () => log('no'));
gone.destroy();
