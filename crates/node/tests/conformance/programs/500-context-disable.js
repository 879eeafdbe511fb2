'use strict';
// O10: disable hides a storage, takes it from what is made until the next run, and leaves the others alone.
const { log, block, tmp } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const two = new AsyncLocalStorage();
const both = (where) => log(where + '-' + als.getStore() + '-' + two.getStore());
als.run('a', () => {
  setImmediate(() => both('made-before'));
  two.run('b', () => { als.disable(); both('inside'); process.nextTick(() => both('tick')); Promise.resolve().then(() => both('then')); });
  both('around');
  als.run('c', () => both('again'));
  both('after-again');
  process.nextTick(() => both('tick-after'));
});
both('outside');
setImmediate(() => setTimeout(() => {
  als.enterWith('e');
  both('entered');
  als.disable();
  both('disabled');
  als.enterWith('f');
  both('entered-again');
  als.exit(() => both('exit'));
  als.exit(() => setTimeout(() => both('next'), 1));
}, 1));
