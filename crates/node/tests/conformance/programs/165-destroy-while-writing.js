'use strict';
// N142 N144: chunks that wait are refused when the stream is destroyed; the write under way is told, too.
const { log } = require('./_lib');
const { Writable } = require('stream');
const w = new Writable({ write(c, e, cb) { log('write-' + c); setImmediate(() => { log('done-' + c); cb(); }); } });
w.on('error', (e) => log('error-' + e.message));
w.on('close', () => log('close'));
for (const c of ['a', 'b', 'c']) w.write(c, (e) => log('cb-' + c + '-' + (e ? e.code : 'ok')));
w.end((e) => log('end-cb-' + (e ? e.code : 'ok')));
process.nextTick(() => { log('tick'); w.destroy(); log('destroyed'); });
