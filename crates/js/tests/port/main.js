'use strict';
const log = require('./log');
const store = require('./store');
const clock = require('./clock');
const work = require('./work');
(async () => {
  log.line('main');
  process.nextTick(() => log.line('main-tick'));
  Promise.resolve().then(() => log.line('main-micro'));
  log.line(`stored-${await store.put('a', 1)}`);
  log.line(await work.run('w'));
  setImmediate(() => {
    log.line('main-immediate');
    // Not before: 5 ms may pass before the immediate on a busy machine.
    clock.later(5).then(() => log.line('later-5'));
  });
  log.line(`got-${await store.take('a')}`);
  log.line(`caught-${await work.fail().catch((error) => error.message)}`);
})();
