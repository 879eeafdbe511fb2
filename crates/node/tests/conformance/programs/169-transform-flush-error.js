'use strict';
// N142 N144: a flush that fails: no end, no finish, error and close.
const { log } = require('./_lib');
const { Transform } = require('stream');
const t = new Transform({ transform(c, e, cb) { cb(null, String(c).toUpperCase()); }, flush(cb) { log('flush'); cb(new Error('no')); } });
for (const e of ['end', 'finish', 'close', 'prefinish']) t.on(e, () => log(e));
t.on('error', (e) => log('error-' + e.message));
t.on('data', (d) => log('data-' + d));
t.write('a', () => log('cb-a'));
t.end('b', (e) => log('end-cb-' + (e ? e.message : 'ok')));
process.nextTick(() => log('tick'));
setImmediate(() => log('immediate'));
