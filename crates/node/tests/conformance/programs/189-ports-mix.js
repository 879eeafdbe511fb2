'use strict';
// N130 N131: two channels, messages that answer, one port closed by its own message.
const { log } = require('./_lib');
const { MessageChannel } = require('worker_threads');
const [a, b] = [new MessageChannel(), new MessageChannel()];
a.port2.on('message', (m) => { log('a-' + m); if (m < 3) { a.port1.postMessage(m + 1); b.port1.postMessage('from-a' + m); } else a.port2.close(); queueMicrotask(() => log('a.micro-' + m)); });
b.port2.on('message', (m) => { log('b-' + m); process.nextTick(() => log('b.tick-' + m)); if (m === 'from-a2') b.port2.close(); });
a.port1.on('close', () => log('a1-close'));
a.port2.on('close', () => log('a2-close'));
b.port1.on('close', () => log('b1-close'));
b.port2.on('close', () => log('b2-close'));
a.port1.postMessage(1);
setImmediate(() => log('immediate'));
