'use strict';
// N120-N123: awaited timers that one signal ends, inside the abort; those who await them resume by microtasks.
const { log } = require('./_lib');
const { setTimeout: sleep, setImmediate: turn, setInterval: every } = require('timers/promises');
const ac = new AbortController();
const abort = () => { log('abort'); ac.abort(); log('aborted'); process.nextTick(() => log('tick')); queueMicrotask(() => log('micro')); };
(async () => { try { await sleep(60000, null, { signal: ac.signal }); } catch (e) { log('sleep-' + e.name); } finally { log('finally'); } })();
(async () => { try { await turn(null, { signal: ac.signal }); log('turn'); } catch (e) { log('turn-' + e.name); } })();
(async () => {
  let n = 0;
  try { for await (const v of every(100, 'v', { signal: ac.signal })) { log(v + ++n); if (n === 2) setTimeout(abort, 10); } } catch (e) { log('every-' + e.name); }
})();
