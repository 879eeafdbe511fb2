'use strict';
// O8 O9: flowing and paused readables, slow writables, drain, finish, destroy, each with its store.
const { log, block } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const { Readable, Writable, PassThrough, finished } = require('stream');
const w = als.run('w', () => new Writable({ highWaterMark: 2, write(c, e, cb) { at('write-' + c); setTimeout(cb, 5); }, final(cb) { at('final'); setImmediate(cb); } }));
als.run('on', () => { w.on('drain', () => at('drain')); w.on('finish', () => at('finish')); w.on('close', () => { at('close'); als.exit(read); }); });
als.run('w1', () => w.write('a', () => at('cb-a')));
als.run('w2', () => w.write('bb', () => at('cb-bb')));
als.run('w3', () => w.end('c', () => at('cb-end')));
als.run('fin', () => finished(w, () => at('finished')));
function read() {
  const r = als.run('r', () => new Readable({ read() { at('read'); } }));
  als.run('data', () => { r.on('data', (c) => at('data-' + c)); r.on('end', () => at('end')); r.on('close', () => { at('r-close'); als.exit(through); }); });
  als.run('p1', () => setImmediate(() => { r.push('1'); als.run('pause', () => { r.pause(); setTimeout(() => als.run('resume', () => r.resume()), 5); }); r.push('2'); }));
  als.run('p2', () => setTimeout(() => { r.push('3'); r.push(null); }, 15));
}
function through() {
  const p = als.run('through', () => new PassThrough());
  als.run('rd', () => p.on('readable', () => { let c; while ((c = p.read()) !== null) at('chunk-' + c); }));
  als.run('t1', () => p.write('x')); als.run('t2', () => setImmediate(() => p.end('y')));
  als.run('pe', () => p.on('end', () => { at('p-end'); als.run('gone', () => p.destroy()); })); als.run('pc', () => p.on('close', () => at('p-close')));
}
