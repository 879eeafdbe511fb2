'use strict';
// H120: events.on: events that end it, an error behind queued events, an abort while events are queued, leaving the loop.
const { log } = require('./_lib');
const { on, EventEmitter } = require('events');
const names = (e) => e.eventNames().join(',');
const chain = (name, n) => { let p = Promise.resolve(); for (let i = 1; i <= n; i++) p = p.then(() => log(name + i)); };
(async () => {
  const a = new EventEmitter();
  setImmediate(() => { a.emit('x', 1); a.emit('x', 2); a.emit('end'); log('names-' + names(a)); a.emit('x', 3); chain('c', 5); });
  for await (const [v] of on(a, 'x', { close: ['end', 'close'] })) log('a-' + v);
  log('ended');
  const b = new EventEmitter();
  setImmediate(() => { b.emit('x', 1); b.emit('x', 2); b.emit('error', new Error('bad')); log('names-' + names(b)); chain('d', 5); });
  try { for await (const [v] of on(b, 'x')) log('b-' + v); } catch (e) { log(e.message); }
  const c = new EventEmitter();
  const ac = new AbortController();
  const it = on(c, 'x', { signal: ac.signal });
  c.emit('x', 1); c.emit('x', 2);
  ac.abort();
  log('names-' + names(c));
  try { for await (const [v] of it) log('c-' + v); } catch (e) { log(e.name + '-' + e.code); }
  try { for await (const [v] of on(c, 'x', { signal: ac.signal })) log('never-' + v); } catch (e) { log('before-' + e.name); }
  const d = new EventEmitter();
  setImmediate(() => { d.emit('x', 1); d.emit('x', 2); d.emit('x', 3); });
  for await (const [v] of on(d, 'x')) { log('d-' + v); if (v === 2) break; }
  log('names-' + names(d));
  const e = new EventEmitter();
  const both = on(e, 'x');
  e.emit('x', 1);
  log('next-' + (await both.next()).value);
  setTimeout(() => e.emit('x', 2), 1);
  log('next-' + (await both.next()).value);
  const f = new EventEmitter();
  setImmediate(() => f.emit('error', new Error('wanted')));
  for await (const [v] of on(f, 'error')) { log(v.message); break; }
})();
