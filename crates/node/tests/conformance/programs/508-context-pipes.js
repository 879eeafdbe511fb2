'use strict';
// O8 O9: pipes, transforms and pipelines.
const { log, block, tmp } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const { Readable, Transform, Writable, PassThrough, pipeline, finished } = require('stream');
const { pipeline: piped } = require('stream/promises');
const t = als.run('t', () => new Transform({ transform(c, e, cb) { at('transform-' + c); setImmediate(() => cb(null, c)); }, flush(cb) { at('flush'); cb(); } }));
const w = als.run('w', () => new Writable({ write(c, e, cb) { at('write-' + c); cb(); }, final(cb) { at('final'); cb(); } }));
als.run('pipe', () => t.pipe(w));
w.on('finish', () => at('finish'));
als.run('one', () => t.write('1'));
als.run('two', () => t.write('2'));
als.run('three', () => t.end('3'));
finished(w, () => { at('finished'); als.exit(next); });
function next() {
  als.run('p', async () => {
    await piped(als.run('src', () => Readable.from((async function* () { at('gen'); yield 'a'; at('gen2'); yield 'b'; })())), new PassThrough(), async function (source) { for await (const c of source) at('sink-' + c); });
    at('piped');
  }).then(() => { at('then'); als.exit(last); });
}
function last() {
  const r = als.run('r', () => new Readable({ read() {} }));
  als.run('reader', async () => { for await (const c of r) at('chunk-' + c); at('over'); });
  setImmediate(() => als.run('push1', () => r.push('x')));
  setTimeout(() => als.run('push2', () => { r.push('y'); r.push(null); }), 5);
}
