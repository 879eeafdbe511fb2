'use strict';
// O8 O9: destroyed, corked and failing streams.
const { log, block } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const { Readable, Writable, Transform, pipeline, finished } = require('stream');
const r = als.run('r', () => new Readable({ encoding: 'utf8', read() { at('read'); } }));
als.run('err', () => r.on('error', (e) => at('error-' + e.message)));
als.run('close', () => r.on('close', () => { at('close'); als.exit(write); }));
als.run('destroyer', () => setImmediate(() => r.destroy(new Error('x'))));
als.run('data', () => r.on('data', (d) => at('data-' + d)));
als.run('push', () => r.push('1'));
function write() {
  const w = als.run('w', () => new Writable({ decodeStrings: false, writev(cs, cb) { at('writev-' + cs.length); process.nextTick(cb); }, destroy(e, cb) { at('destroy'); cb(e); } }));
  als.run('on', () => { w.on('finish', () => at('finish')); w.on('close', () => { at('w-close'); als.exit(fail); }); });
  als.run('cork', () => { w.cork(); w.write('a', () => at('a')); als.run('b', () => w.write('b', () => at('b'))); process.nextTick(() => { at('uncork'); w.uncork(); }); });
  als.run('c', () => w.write('c', () => at('c')));
  setImmediate(() => als.run('end', () => w.end(() => at('ended'))));
}
function fail() {
  const s = als.run('src', () => new Readable({ read() {} }));
  const t = als.run('tr', () => new Transform({ transform(c, e, cb) { at('transform'); setImmediate(() => cb(new Error('bad'))); } }));
  const k = als.run('sink', () => new Writable({ write(c, e, cb) { cb(); } }));
  als.run('line', () => pipeline(s, t, k, (e) => { at('pipeline-' + e.message); }));
  als.run('f', () => finished(t, (e) => at('finished-' + e.message)));
  als.run('kc', () => k.on('close', () => at('sink-close')));
  als.run('pusher', () => setTimeout(() => s.push('z'), 1));
}
