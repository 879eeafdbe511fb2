'use strict';
// N49 N44: a timer that refreshes itself goes behind those of its duration that its callback has set.
const { log } = require('./_lib');
let rounds = 0;
const a = setTimeout(() => {
  log('a' + ++rounds);
  if (rounds === 3) return;
  setTimeout(() => log('after-a' + rounds), 20);
  a.refresh();
  Promise.resolve().then(() => log('micro'));
  process.nextTick(() => log('tick'));
}, 20);
setTimeout(() => log('b'), 20);
