'use strict';
// N155: callbackify, aborted, deprecate.
const { log } = require('./_lib');
const util = require('util');

process.on('uncaughtException', (e) => log('uncaught ' + e.message));
process.on('warning', (w) => log(`${w.name} ${w.code} ${w.message}`));
const call = util.callbackify(async (n) => { if (n < 0) throw new Error('negative'); return n * 2; });
call(21, (e, n) => { log(`called ${n}`); process.nextTick(() => log('tick')); });
call(-1, (e) => log('failed ' + e.message));
setTimeout(() => call(1, () => { throw new Error('in the callback'); }), 300);
Promise.resolve().then(() => log('microtask')).then(() => log('microtask 2')).then(() => log('microtask 3'));
process.nextTick(() => log('own tick'));

const old = util.deprecate((n) => n + 1, 'old() is old', 'DEP1');
const older = util.deprecate((n) => n + 2, 'older() is old', 'DEP1');
log(`old ${old(1)} ${old(2)} ${older(3)}`);
util.deprecate(() => {}, 'without a code')();

const controller = new AbortController();
const resource = {};
util.aborted(controller.signal, resource).then(() => log('aborted'));
setImmediate(() => {
  controller.abort();
  log('after the abort');
  util.aborted(controller.signal, resource).then(() => log('aborted before'));
});
