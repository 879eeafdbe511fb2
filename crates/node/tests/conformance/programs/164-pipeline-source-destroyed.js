'use strict';
// N143: a source that is destroyed before its end is a premature close for the rest.
const { log } = require('./_lib');
const { Readable, Writable, pipeline } = require('stream');
const r = new Readable({ objectMode: true, read() {} });
const w = new Writable({ objectMode: true, write(c, e, cb) { log('w-' + c); cb(); } });
for (const [name, s] of [['r', r], ['w', w]]) {
  s.on('error', (e) => log(name + '-error-' + e.code));
  s.on('close', () => log(name + '-close'));
}
pipeline(r, w, (err) => log('done-' + err.code));
r.push('a');
setImmediate(() => { r.destroy(); log('destroyed'); queueMicrotask(() => log('micro')); });
