'use strict';
// N144 N102 N103 H112: listeners that are added inside 'close' hear what is emitted later.
const { log } = require('./_lib');
const { Readable, Writable, Duplex } = require('stream');
const dgram = require('dgram');
const readline = require('readline');
const { spawn } = require('child_process');
const EventEmitter = require('events');
const later = (name, emitter) => emitter.on('close', () => {
  log(name + ' close');
  emitter.on('error', (e) => log(`${name} error ${e.message}`));
  emitter.on(EventEmitter.errorMonitor, (e) => log(`${name} monitor ${e.message}`));
  emitter.once('extra', () => log(name + ' extra'));
  emitter.prependListener('extra', () => log(name + ' first'));
  process.nextTick(() => emitter.emit('error', new Error('by tick')));
  setImmediate(() => {
    emitter.emit('error', new Error('by turn'));
    log(`${name} ${emitter.emit('extra')} ${emitter.emit('extra')} ${emitter.listenerCount('error')}`);
  });
});
later('readable', new Readable({ read() {} })).destroy();
setImmediate(() => setImmediate(() => {
  const writable = later('writable', new Writable({ write(c, e, cb) { cb(); } }));
  writable.end();
  setImmediate(() => setImmediate(() => {
    const failed = new Duplex({ read() {}, write(c, e, cb) { cb(); } });
    failed.once('error', (e) => log('known ' + e.message));
    later('duplex', failed).destroy(new Error('failed'));
    setImmediate(() => setImmediate(sockets));
  }));
}));
function sockets() {
  later('dgram', dgram.createSocket('udp4')).close();
  setImmediate(() => setImmediate(() => {
    const rl = readline.createInterface({ input: new Readable({ read() {} }) });
    later('readline', rl);
    rl.close();
    setImmediate(() => setImmediate(children));
  }));
}
function children() {
  later('child', spawn('true', { stdio: 'ignore' }));
  const missing = spawn('no-such-program-here', { stdio: 'ignore' });
  missing.once('error', () => log('missing'));
  setTimeout(() => {
    const throwing = new Readable({ read() {} });
    process.on('uncaughtException', (e) => log('uncaught ' + e.message));
    throwing.on('close', () => { throwing.on('error', (e) => log('late ' + e.message)); throw new Error('in close'); });
    throwing.on('close', () => log('never'));
    throwing.destroy();
    setImmediate(() => throwing.emit('error', new Error('heard')));
  }, 300);
}
