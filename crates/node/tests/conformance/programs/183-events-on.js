'use strict';
// N117: events that were emitted before anybody asked, and after; an error ends the loop.
const { log } = require('./_lib');
const { EventEmitter, on, once } = require('events');
const e = new EventEmitter();
(async () => {
  try { for await (const [v] of on(e, 'x')) { log('x' + v); process.nextTick(() => log('tick' + v)); } } catch (err) { log('caught-' + err.message); }
})();
e.emit('x', 1); e.emit('x', 2);
log('sync');
once(e, 'y').then(([v]) => log('once-' + v));
setImmediate(() => { e.emit('x', 3); e.emit('y', 'v'); queueMicrotask(() => log('micro')); });
setTimeout(() => { e.emit('x', 4); e.emit('error', new Error('no')); log('emitted'); }, 30);
