'use strict';
// N114: an error event without a listener throws the error itself.
const { log } = require('./_lib');
const EventEmitter = require('events');
const net = require('net');
const { Readable } = require('stream');
const coded = new Error('coded');
coded.code = 'E_CODED';
process.on('uncaughtException', (e, origin) => {
  log(`uncaught ${e === coded} ${e.name} ${e.code} ${e.message} ${origin}`);
});
process.on('exit', (code) => log('exit-' + code));
const steps = [
  () => new EventEmitter().emit('error', coded),
  () => new EventEmitter().emit('error', 'text'),
  () => { const e = new EventEmitter(); e.on(EventEmitter.errorMonitor, (x) => log('monitor ' + x.message)); e.emit('error', coded); },
  () => new Readable({ read() { this.destroy(coded); } }).resume(),
  () => { net.connect(1, '127.0.0.1').on('close', () => setImmediate(next)); },
  () => { Promise.resolve().then(() => new EventEmitter().emit('error', coded)); },
  () => { new Promise(() => new EventEmitter().emit('error', coded)).catch((e) => log('rejected ' + (e === coded))); },
];
function next() {
  const step = steps.shift();
  if (!step) return;
  setImmediate(() => { if (steps.length !== 2) setImmediate(next); step(); });
}
next();
