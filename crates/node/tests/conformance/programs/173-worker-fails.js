'use strict';
// N132: a worker that throws: its messages, the error, then the exit with 1.
const { log } = require('./_lib');
const { Worker } = require('worker_threads');
const w = new Worker(`
  const { parentPort } = require('worker_threads');
  parentPort.postMessage('a');
  setTimeout(() => { parentPort.postMessage('b'); throw new Error('in the worker'); }, 20);
`, { eval: true });
w.on('online', () => log('online'));
w.on('message', (m) => log('message-' + m));
w.on('error', (e) => log('error-' + e.message));
w.on('exit', (code) => log('exit-' + code));
