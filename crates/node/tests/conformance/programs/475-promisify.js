'use strict';
// H123: promisify: called at once, settled by the callback, errors, a callback that is called twice, a throw.
const { log } = require('./_lib');
const { promisify } = require('util');
const { Writable } = require('stream');
const fs = require('fs');
const chain = (name, n) => { let p = Promise.resolve(); for (let i = 1; i <= n; i++) p = p.then(() => log(name + i)); };
(async () => {
  const now = promisify((x, cb) => { log('in'); cb(null, x); log('out'); });
  const p = now(7);
  chain('c', 4);
  p.then((v) => log('then-' + v));
  log('got-' + await p);
  const twice = promisify((cb) => { cb(null, 1); cb(new Error('late')); });
  log('twice-' + await twice());
  const throwing = promisify(() => { throw new Error('thrown'); });
  try { await throwing(); } catch (e) { log(e.message); }
  const later = promisify((ms, cb) => setTimeout(cb, ms, null, 'late'));
  setTimeout(() => log('timer'), 5);
  log(await later(5));
  await promisify(fs.stat)('/no/such/file').catch((e) => log(e.code + '-' + e.syscall));
  const w = new Writable({ write(x, _, cb) { log('write-' + x); cb(); } });
  const write = promisify((x, cb) => w.write(x, cb));
  await write('a');
  log('written');
  const all = await Promise.all([now(1), later(1), now(2)]);
  log('all-' + all);
})();
