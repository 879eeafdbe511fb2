'use strict';
// N143 N144: a transform that fails destroys the whole pipeline; the callback comes last.
const { log } = require('./_lib');
const { Readable, Writable, Transform, pipeline } = require('stream');
const r = Readable.from(['a', 'b', 'c']);
const t = new Transform({ objectMode: true, transform(c, e, cb) { log('t-' + c); if (c === 'b') cb(new Error('bad')); else cb(null, c); } });
const w = new Writable({ objectMode: true, write(c, e, cb) { log('w-' + c); cb(); } });
for (const [name, s] of [['r', r], ['t', t], ['w', w]]) {
  s.on('error', (e) => log(name + '-error-' + e.message));
  s.on('close', () => log(name + '-close'));
}
pipeline(r, t, w, (err) => { log('done-' + err.message); process.nextTick(() => log('done.tick')); });
process.nextTick(() => log('tick'));
