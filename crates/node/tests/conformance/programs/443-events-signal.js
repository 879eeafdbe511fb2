'use strict';
// N118: an awaited event that a signal ends.
const { log } = require('./_lib');
const { EventEmitter, once, on } = require('events');
const e = new EventEmitter();
const said = (name) => (error) => log(name + '-' + error.name + '-' + error.code + '-' + error.message + '-' + error.cause.message);
const counts = (name) => log(name + '-' + e.listenerCount('x') + '-' + e.listenerCount('error'));
(async () => {
  const c = new AbortController();
  const waiting = once(e, 'x', { signal: c.signal });
  counts('waiting');
  setImmediate(() => { c.abort(); counts('aborted'); process.nextTick(() => log('tick')); Promise.resolve().then(() => log('micro 1')).then(() => log('micro 2')).then(() => log('micro 3')); });
  try { await waiting; } catch (error) { said('once')(error); }
  const before = once(e, 'x', { signal: AbortSignal.abort() });
  counts('before');
  Promise.resolve().then(() => log('micro 1')).then(() => log('micro 2'));
  try { await before; } catch (error) { said('before')(error); }
  const kept = new AbortController();
  const soon = once(e, 'x', { signal: kept.signal });
  e.emit('x', 7);
  log('value-' + (await soon)[0]);
  kept.abort();
  const d = new AbortController();
  setImmediate(() => { e.emit('x', 1); e.emit('x', 2); d.abort(); e.emit('x', 3); });
  try { for await (const [n] of on(e, 'x', { signal: d.signal })) log('event-' + n); } catch (error) { said('on')(error); }
  counts('over');
})();
