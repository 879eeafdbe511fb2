'use strict';
// O11: combinators, thenables and finally: who makes which promise.
const { log, block } = require('./_lib');
const { createHook, executionAsyncId, triggerAsyncId, AsyncResource } = require('async_hooks');
const names = new Map([[executionAsyncId(), 'main'], [0, 'none']]);
const count = {};
const name = (id) => names.get(id) || 'unknown';
const h = createHook({
  init(id, type, trigger) { count[type] = (count[type] || 0) + 1; names.set(id, type + count[type]); log('init-' + name(id) + '-by-' + name(trigger) + '-in-' + name(executionAsyncId())); },
  before(id) { log('before-' + name(id)); },
  after(id) { log('after-' + name(id)); },
  destroy(id) { if (/Timeout|Immediate|Mine|Other/.test(name(id))) log('destroy-' + name(id)); },
  promiseResolve(id) { log('resolve-' + name(id)); },
}).enable();
const where = (w) => log(w + '-in-' + name(executionAsyncId()) + '-by-' + name(triggerAsyncId()));
Promise.resolve(1).finally(() => where('finally')).then(() => where('after-finally'));
setTimeout(() => {
  where('race');
  Promise.race([Promise.resolve('a'), Promise.resolve('b')]).then(() => where('raced'));
  setTimeout(() => {
    where('settled');
    Promise.allSettled([Promise.resolve(1), Promise.reject(2)]).then(() => where('all-settled'));
    setTimeout(() => {
      where('thenable');
      (async () => { await { then(r) { where('in-then'); r(1); } }; where('awaited'); })();
      setTimeout(() => {
        where('any');
        Promise.any([Promise.reject(1), Promise.resolve(2)]).then(() => where('anyed'));
        setTimeout(() => {
          where('adopt');
          const p = Promise.resolve(5);
          new Promise((r) => r(p)).then(() => where('adopted'));
          setTimeout(() => { where('returns'); Promise.resolve().then(() => ({ then(r) { where('inner-then'); r(); } })).then(() => where('returned')); }, 20);
        }, 20);
      }, 20);
    }, 20);
  }, 20);
}, 20);
