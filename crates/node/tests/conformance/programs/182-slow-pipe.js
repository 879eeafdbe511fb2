'use strict';
// N140 N142: a pipe with a slow sink; taken off and put on again.
const { log } = require('./_lib');
const { Readable, Writable } = require('stream');
const r = Readable.from(['a', 'b', 'c', 'd'], { highWaterMark: 1 });
const w = new Writable({ objectMode: true, highWaterMark: 1, write(c, e, cb) { log('w-' + c); setImmediate(() => { log('done-' + c); cb(); }); } });
w.on('drain', () => log('drain'));
w.on('finish', () => log('finish'));
w.on('pipe', () => log('pipe'));
w.on('unpipe', () => log('unpipe'));
r.on('end', () => log('end'));
r.pipe(w);
setTimeout(() => log('later'), 100);
