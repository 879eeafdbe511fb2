'use strict';
// Streams with a signal: a readable, a writable, a loop over chunks; aborted before; after the end.
const { log } = require('./_lib');
const { addAbortSignal, Readable, Writable } = require('stream');
const watch = (name, s) => { for (const e of ['end', 'finish', 'close']) s.on(e, () => log(name + '.' + e)); s.on('error', (e) => log(name + '.' + e.name + '-' + e.code)); };
const c = new AbortController();
const r = addAbortSignal(c.signal, new Readable({ objectMode: true, read() {} }));
const w = addAbortSignal(c.signal, new Writable({ objectMode: true, write(x, _, cb) { log('w-' + x); } }));
watch('r', r); watch('w', w);
r.on('data', (x) => log('r-' + x));
r.push(1);
w.write(1, (e) => log('cb-' + (e && e.name)));
w.write(2, (e) => log('cb-' + (e && e.name)));
setTimeout(() => {
  log('abort');
  c.abort();
  log('aborted-' + r.destroyed + '-' + w.destroyed);
  process.nextTick(() => log('tick'));
  Promise.resolve().then(() => log('promise'));
}, 5);
setTimeout(async () => {
  const gone = addAbortSignal(AbortSignal.abort(), new Readable({ read() {} }));
  log('gone-' + gone.destroyed);
  gone.on('error', (e) => log('gone.' + e.name));
  const d = new AbortController();
  const s = addAbortSignal(d.signal, Readable.from([1, 2, 3]));
  s.on('close', () => log('s.close'));
  try { for await (const x of s) { log('s-' + x); if (x === 2) d.abort(); } } catch (e) { log(e.name); }
  const f = new AbortController();
  const t = addAbortSignal(f.signal, Readable.from([1]));
  for await (const x of t) log('t-' + x);
  f.abort();
  log('t-' + t.errored);
}, 20);
