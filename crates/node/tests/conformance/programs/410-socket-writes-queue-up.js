'use strict';
// N96 N142: a socket writes what has queued up, or was corked, as one request.
const { log, tmp } = require('./_lib');
const net = require('net');
const written = (name) => (e) => {
  log('written ' + name + (e ? ' ' + e.code : ''));
  process.nextTick(() => log('tick ' + name));
  Promise.resolve().then(() => log('promise ' + name));
};
let got = '';
const server = net.createServer((s) => {
  s.on('data', (d) => { got += d; });
  s.on('end', () => { log('got ' + got); server.close(); });
});
server.listen(tmp('s'), () => {
  const c = net.connect(tmp('s'));
  for (const n of ['a', 'b', 'c']) c.write(n, written(n));
  c.on('connect', () => {
    log('connect');
    c.write('d', written('d'));
    c.write('e', written('e'));
    c.cork();
    c.write('f', written('f'));
    c.write('g', written('g'));
    c.write('h');
    log('corked ' + c.writableLength);
    c.uncork();
    log('uncorked ' + c.writableLength);
    setImmediate(() => {
      c.cork();
      c.write('i', written('i'));
      c.cork();
      c.write('j', written('j'));
      c.uncork();
      log('still ' + c.writableLength);
      process.nextTick(() => {
        c.uncork();
        log('now ' + c.writableLength);
        c.cork();
        c.write('k', written('k'));
        c.end('l', written('end'));
      });
    });
  });
  for (const event of ['ready', 'drain', 'finish', 'close']) c.on(event, () => log(event));
});
