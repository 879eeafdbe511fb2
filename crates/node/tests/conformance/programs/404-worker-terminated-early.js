'use strict';
// N132: a worker that is terminated before its program begins is never online, and exits with 0.
const { log } = require('./_lib');
const { Worker } = require('worker_threads');
const make = (name, next) => {
  const w = new Worker("require('worker_threads').parentPort.postMessage('hi')", { eval: true });
  w.on('online', () => log(name + ' online'));
  w.on('message', () => log(name + ' message'));
  w.on('error', () => log(name + ' error'));
  w.on('exit', (code) => { log(name + ' exit ' + code); next(); });
  return w;
};
const now = () => { const w = make('now', tick); w.postMessage(1); w.terminate(); w.terminate(); };
const tick = () => { const w = make('tick', immediate); process.nextTick(() => w.terminate()); };
const immediate = () => { const w = make('immediate', online); setImmediate(() => w.terminate()); };
const online = () => {
  const w = new Worker("require('worker_threads').parentPort.on('message', () => {})", { eval: true });
  w.on('online', () => { log('online'); w.terminate(); });
  w.on('exit', (code) => { log('exit ' + code); thrown(); });
};
const thrown = () => {
  const w = new Worker("const e = new Error('thrown'); e.code = 'E_WORKER'; throw e;", { eval: true });
  w.on('online', () => log('online'));
  w.on('error', (e) => log(`${e.name} ${e.code} ${e.message}`));
  w.on('exit', (code) => log('exit ' + code));
};
now();
