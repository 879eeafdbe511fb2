'use strict';
// H124 N120-N125: the scheduler between timers, immediates and ticks.
const { log } = require('./_lib');
const { scheduler, setTimeout: sleep, setImmediate: turn, setInterval: every } = require('timers/promises');
(async () => {
  setTimeout(() => log('timer-20'), 20);
  scheduler.wait(20).then(() => log('wait-20'));
  sleep(20, 'v').then((v) => log('sleep-' + v));
  setTimeout(() => { log('timer-20b'); process.nextTick(() => log('tick')); }, 20);
  await scheduler.wait(40);
  setImmediate(() => { log('immediate-1'); process.nextTick(() => log('tick-1')); });
  const y = scheduler.yield().then(() => log('yielded'));
  turn('t').then((v) => log('turn-' + v));
  setImmediate(() => log('immediate-2'));
  await y;
  const ac = new AbortController();
  const w = scheduler.wait(1000, { signal: ac.signal }).catch((e) => log(e.name + '-' + e.code));
  setImmediate(() => { ac.abort(); log('aborted'); Promise.resolve().then(() => log('p1')).then(() => log('p2')); });
  await w;
  await scheduler.wait(1000, { signal: ac.signal }).catch((e) => log('before-' + e.name));
  let n = 0;
  for await (const v of every(5, 'i')) { log(v + ++n); if (n === 3) break; }
  log('left');
})();
