'use strict';
// Texts and codes: warnings, AggregateError, reasons of aborts, names of events.
const { log } = require('./_lib');
const EventEmitter = require('events');
const { Readable } = require('stream');
const net = require('net');
process.on('warning', (w) => log(`${w.name} | ${w.message} | ${w.code} | ${w.detail}`));
class Mine extends EventEmitter {}
const e = new EventEmitter();
for (let i = 0; i < 12; i++) e.on('data', () => {});
const mine = new Mine();
mine.setMaxListeners(1);
mine.on(EventEmitter.errorMonitor, () => {});
const second = () => {};
mine.on(EventEmitter.errorMonitor, second);
mine.off(EventEmitter.errorMonitor, second);
mine.on(EventEmitter.errorMonitor, second);
mine.on('a', () => {});
mine.prependListener('a', () => {});
mine.once('a', () => {});
for (const emitter of [new Readable({ read() {} }), new net.Socket(), net.createServer()]) {
  emitter.setMaxListeners(1);
  emitter.on('x', () => {});
  emitter.on('x', () => {});
}
log(mine.eventNames().map(String).join(' '));
process.emitWarning('plain');
process.emitWarning('typed', 'MyType');
process.emitWarning('coded', 'MyType', 'C001');
process.emitWarning('detailed', { type: 'MyType', code: 'C002', detail: 'more' });
const say = (name, x) => log(`${name} | ${x.name} | ${x.message} | ${x.code}`);
const controller = new AbortController();
controller.abort();
say('abort', controller.signal.reason);
say('static', AbortSignal.abort().reason);
const timeout = AbortSignal.timeout(1);
timeout.addEventListener('abort', () => say('timeout', timeout.reason));
setTimeout(() => {}, 100);
const { setTimeout: sleep } = require('timers/promises');
sleep(1, 0, { signal: controller.signal }).catch((x) => { say('sleep', x); say('cause', x.cause); });
Promise.any([Promise.reject(new Error('a'))]).catch((x) => { say('any', x); log(String(x.errors.length)); });
