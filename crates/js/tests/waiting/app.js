'use strict';
// The functions that are Rust's in the other run: each waits for `count` ticks, or for a promise.
exports.waits = async (count, fails) => {
  for (let i = 0; i < count; i++) await null;
  if (fails) throw new TypeError('no');
  return 'yes';
};
exports.waitsFor = async (promise, count) => {
  let value;
  for (let i = 0; i < count; i++) value = await promise;
  return value;
};
exports.settled = (fails) => (fails ? Promise.reject(new TypeError('no')) : Promise.resolve('yes'));
exports.later = (fails) => new Promise((resolve, reject) => {
  queueMicrotask(() => (fails ? reject(new TypeError('no')) : resolve('yes')));
});
