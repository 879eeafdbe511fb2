'use strict';
// O9: ports run with the context of their channel, a worker's events with that of the worker; a worker begins with none.
const { log, block, tmp } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const { Worker, MessageChannel, BroadcastChannel, isMainThread } = require('worker_threads');
const { port1, port2 } = als.run('channel', () => new MessageChannel());
als.run('on1', () => { port1.on('message', (m) => { at('one-' + m); als.run('closer', () => port1.close()); }); port1.on('close', () => at('one-closed')); });
als.run('on2', () => { port2.on('message', (m) => { at('two-' + m); als.run('answer', () => port2.postMessage('b')); }); port2.on('close', () => { at('two-closed'); als.exit(worker); }); });
als.run('post', () => port1.postMessage('a'));
function worker() {
  const w = als.run('worker', () => new Worker('const { parentPort: p } = require("worker_threads"); p.once("message", (m) => { p.postMessage(m + 1); });', { eval: true }));
  als.run('on', () => { w.on('message', (m) => at('message-' + m)); w.on('error', () => at('error')); w.on('exit', () => { at('exit'); als.exit(stop); }); });
  als.run('poster', () => w.postMessage(1));
}
function stop() {
  const w = als.run('stopped', () => new Worker('setInterval(() => {}, 1000)', { eval: true }));
  w.on('online', () => als.run('terminator', async () => { await w.terminate(); at('terminated'); }));
}
