'use strict';
// O5: functions with callbacks made promises, and promises made callbacks.
const { log, block } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const { promisify } = require('util');
const f = (x, cb) => { at('f-' + x); setTimeout(() => { at('f-timer'); als.enterWith('cb' + x); cb(x > 2 ? new Error('big') : null, x * 2); }, 1); };
const p = promisify(f);
als.run('a', async () => { const v = await p(1); at('v-' + v); als.enterWith('b'); try { await p(3); } catch (e) { at('e-' + e.message); } at('end'); }).then(() => { at('then'); als.exit(more); });
function more() {
  const sync = promisify((x, cb) => { als.enterWith('sync'); cb(null, x); at('after-cb'); });
  als.run('s', async () => { const v = await sync(7); at('sync-' + v); });
  at('out');
  als.run('nested', () => { const q = p(2); q.then(() => at('q1')); als.run('deeper', () => q.then(() => { at('q2'); return p(1); }).then(() => at('q3'))); });
}
