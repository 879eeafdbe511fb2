'use strict';
// N60 N61 N9: immediates that queue immediates, ticks and awaits that queue immediates.
const { log } = require('./_lib');
const turn = () => new Promise((resolve) => setImmediate(resolve));
(async () => {
  for (let i = 1; i <= 3; i++) { await turn(); log('await' + i); process.nextTick(() => log('await.tick' + i)); }
})();
setImmediate(() => {
  log('one');
  setImmediate(() => { log('one.one'); Promise.resolve().then(() => setImmediate(() => log('from-micro'))); });
  process.nextTick(() => setImmediate(() => log('from-tick')));
});
setImmediate(() => { log('two'); queueMicrotask(() => log('two.micro')); });
