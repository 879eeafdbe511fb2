'use strict';
// N20: what an async generator costs: yield, await in the body, its end, an error, leaving the loop.
const { log } = require('./_lib');
const chain = (name, n) => { let p = Promise.resolve(); for (let i = 1; i <= n; i++) p = p.then(() => log(name + i)); };
async function* two() { try { log('start'); yield 'a'; log('mid'); await null; yield 'b'; log('end'); } finally { log('finally'); } }
(async () => {
  const g = two();
  log('made');
  chain('c', 10);
  for await (const x of g) log(x);
  log('done');
  chain('d', 6);
  async function* failing() { yield 1; throw new Error('bad'); }
  try { for await (const x of failing()) log('f-' + x); } catch (e) { log(e.message); }
  async function* slow() { await new Promise((r) => setTimeout(r, 5)); yield 'late'; }
  const s = slow();
  setImmediate(() => log('immediate'));
  log((await s.next()).value);
  log('rest-' + (await s.next()).done);
  log('after-' + (await s.next()).done);
})();
