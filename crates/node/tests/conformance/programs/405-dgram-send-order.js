'use strict';
// N103: a send's callback comes by a tick with the size; a closed socket throws.
const { log } = require('./_lib');
const dgram = require('dgram');
process.on('uncaughtException', (e) => log(`${e.name} ${e.code} ${e.message}`));
const s = dgram.createSocket('udp4');
s.on('listening', () => log('listening'));
s.on('error', (e) => log('error ' + e.code));
s.on('close', () => log('close'));
let left = 3;
s.on('message', (m) => { log('message ' + m); if (--left === 0) setImmediate(close); });
s.bind(0, '127.0.0.1', () => {
  log('bound');
  const { port } = s.address();
  for (const name of ['a', 'bb', 'ccc']) {
    s.send(name, port, '127.0.0.1', (e, n) => {
      log(`sent ${name} ${e} ${n}`);
      process.nextTick(() => log('tick of ' + name));
    });
  }
  s.send('x'.repeat(70000), port, '127.0.0.1', (e) => log(`${e.code} ${e.syscall}`));
  s.send('x'.repeat(70000), port, '127.0.0.1');
  process.nextTick(() => log('tick'));
  Promise.resolve().then(() => log('promise'));
  setImmediate(() => log('immediate'));
  log('end of bound');
});
setImmediate(() => s.bind(0));
function close() {
  const { port } = s.address();
  s.send('late', port, '127.0.0.1', () => log('never'));
  s.close(() => log('close callback'));
  log('closed');
  process.nextTick(() => log('tick'));
  setImmediate(() => s.send('x', port, '127.0.0.1', () => log('never')));
  setImmediate(() => s.close());
  setImmediate(() => s.bind(0));
  setImmediate(() => log('end'));
}
