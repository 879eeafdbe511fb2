'use strict';
// H113: a loop over lines: closed inside, an input that fails, lines while the body waits, two loops.
const { log } = require('./_lib');
const readline = require('readline');
const { PassThrough } = require('stream');
const { setTimeout: sleep } = require('timers/promises');
(async () => {
  const a = new PassThrough();
  const rl = readline.createInterface({ input: a });
  rl.on('close', () => log('close'));
  setImmediate(() => a.write('1\n2\n3\n'));
  for await (const l of rl) { log('a-' + l); if (l === '2') rl.close(); }
  log('done');
  const b = new PassThrough();
  const failing = readline.createInterface({ input: b });
  setImmediate(() => { b.write('1\n2\n'); b.destroy(new Error('torn')); });
  try { for await (const l of failing) { log('b-' + l); await null; } } catch (e) { log(e.message); }
  const c = new PassThrough();
  const slow = readline.createInterface({ input: c });
  slow.on('line', (l) => log('line-' + l));
  setImmediate(() => { c.write('1\n2\n'); setTimeout(() => c.end('3'), 5); });
  for await (const l of slow) { log('slow-' + l); await sleep(10); log('slept'); }
  const d = new PassThrough();
  const two = readline.createInterface({ input: d });
  setImmediate(() => { d.write('x\ny\nz\n'); });
  for await (const l of two) { log('d-' + l); break; }
  log('listeners-' + two.listenerCount('line'));
  for await (const l of two) log('again-' + l);
  log('over-' + !!two.closed);
})();
