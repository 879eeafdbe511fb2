'use strict';
// N145 H113 H120: what leaving an async iterator does: a stream is destroyed, listeners are removed, an interval is cleared, an interface stays open.
const { log } = require('./_lib');
const events = require('events');
const readline = require('readline');
const timers = require('timers/promises');
const { PassThrough, Readable } = require('stream');
const turn = () => new Promise((r) => setTimeout(r, 20));
(async () => {
  const watched = (name, s) => { s.on('error', (e) => log(`${name} error ${e.code}`)); s.on('close', () => log(`${name} close`)); s.on('end', () => log(`${name} end`)); return s; };
  const s = watched('buffered', Readable.from(['a', 'b', 'c']));
  for await (const x of s) { log('item ' + x); process.nextTick(() => log('tick')); Promise.resolve().then(() => log('promise')); break; }
  log(`left ${s.destroyed} ${s.errored && s.errored.code}`);
  await turn();
  const p = watched('waiting', new PassThrough({ objectMode: true }));
  p.write('a');
  for await (const x of p) { log('item ' + x); break; }
  log(`left ${p.destroyed} ${p.listenerCount('readable') >= 0}`);
  await turn();
  const t = watched('thrown', Readable.from(['a', 'b']));
  try { for await (const x of t) { throw new Error('mine ' + x); } } catch (e) { log(e.message + ' ' + t.destroyed); }
  await turn();
  const k = watched('kept', Readable.from(['a', 'b', 'c']));
  for await (const x of k.iterator({ destroyOnReturn: false })) { log('item ' + x); break; }
  log(`left ${k.destroyed}`);
  for await (const x of k) log('rest ' + x);
  await turn();
  const unread = watched('unread', Readable.from(['a']));
  const it = unread[Symbol.asyncIterator]();
  await it.return();
  log(`unread ${unread.destroyed}`);
  const last = watched('last', Readable.from(['a']));
  for await (const x of last) { log('item ' + x); await turn(); break; }
  log(`left ${last.destroyed} ${last.readableEnded}`);
  await turn();
  const e = new events.EventEmitter();
  const on = events.on(e, 'x');
  e.emit('x', 1);
  e.emit('x', 2);
  for await (const [x] of on) { log('event ' + x); break; }
  log(`listeners ${e.listenerCount('x')} ${e.listenerCount('error')}`);
  e.emit('x', 3);
  log('after ' + JSON.stringify(await on.next()) + ' ' + JSON.stringify(await on.next()));
  const input = new PassThrough();
  const rl = readline.createInterface({ input });
  rl.on('close', () => log('rl.close'));
  setImmediate(() => input.write('1\n2\n3\n'));
  for await (const l of rl) { log('line ' + l); break; }
  log(`open ${!rl.closed} ${rl.listenerCount('line')} ${rl.listenerCount('close')}`);
  rl.on('line', (l) => log('heard ' + l));
  input.write('4\n');
  await turn();
  for await (const l of rl) log('again ' + l);
  rl.close();
  let n = 0;
  for await (const v of timers.setInterval(5, 'v')) { log('interval ' + v); if (++n === 2) break; }
  log('done');
})();
