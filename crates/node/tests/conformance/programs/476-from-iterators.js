'use strict';
// H121: Readable.from arrays, ranges, texts and buffers; read in paused mode, piped, taken from, iterated twice.
const { log } = require('./_lib');
const { Readable, Writable } = require('stream');
const range = { *[Symbol.iterator]() { for (let i = 1; i <= 4; i++) { log('next-' + i); yield i; } } };
(async () => {
  const a = Readable.from(range);
  log('made');
  a.on('readable', () => { let x; while ((x = a.read()) !== null) log('a-' + x); });
  a.on('end', () => log('a.end'));
  await new Promise((r) => a.on('close', r));
  const b = Readable.from(range);
  b.on('data', (x) => { log('b-' + x); if (x === 2) { b.pause(); setImmediate(() => { log('resume'); b.resume(); }); } });
  await new Promise((r) => b.on('end', r));
  const w = new Writable({ objectMode: true, highWaterMark: 1, write(x, _, cb) { log('w-' + x); setImmediate(cb); } });
  Readable.from(range).pipe(w);
  await new Promise((r) => w.on('finish', r));
  log('taken-' + await Readable.from(range).take(2).toArray());
  const s = Readable.from('text');
  s.on('data', (x) => log('s-' + x));
  s.on('end', () => log('s.end'));
  s.on('close', () => log('s.close'));
  await new Promise((r) => s.on('close', r));
  const c = Readable.from(range);
  for await (const x of c) { log('c-' + x); if (x === 2) break; }
  log('destroyed-' + c.destroyed);
  for await (const x of Readable.from([1, 2]).map((x) => x * 2)) log('m-' + x);
})();
