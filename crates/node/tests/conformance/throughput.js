'use strict';
// How many operations a second? Prints one line `name operations-per-second` for each kind, the best of some rounds.
// The same measurements as ../throughput.rs.
const BATCH = 1000;
const BATCHES = Number(process.argv[2]);
const LINES = 20000;
const ROUNDS = 100;

// Calls round(done) ROUNDS times, one after the other, and reports the fastest.
function measure(name, operations, round, next) {
  let best = Infinity;
  let left = ROUNDS;
  const once = () => {
    const start = process.hrtime.bigint();
    round(() => {
      best = Math.min(best, Number(process.hrtime.bigint() - start));
      if (--left > 0) return setImmediate(once);
      console.log(name + ' ' + Math.round(operations * 1e9 / best));
      next();
    });
  };
  setImmediate(once);
}

// BATCHES times: queue BATCH closures; the last of them queues the next batch.
function batches(queue) {
  return (done) => {
    let left = BATCHES;
    let sum = 0;
    const batch = () => {
      if (left-- === 0) return done();
      for (let i = 1; i < BATCH; i++) queue(() => { sum += 1; });
      queue(batch);
    };
    batch();
  };
}

function timers(done) {
  for (let i = 0; i < BATCH * BATCHES; i++) clearTimeout(setTimeout(() => {}, 100));
  done();
}

// Writes LINES short lines into a file; done when it is closed.
const path = require('path').join(require('os').tmpdir(), 'phaseloop-throughput-node-' + process.pid);
function lines(done) {
  const file = require('fs').createWriteStream(path);
  for (let i = 0; i < LINES; i++) file.write('a short line\n');
  file.on('close', done);
  file.end();
}
process.on('exit', () => require('fs').rmSync(path, { force: true }));

const ALL = BATCH * BATCHES;
measure('immediates', ALL, batches(setImmediate), () =>
  measure('next_tick', ALL, batches(process.nextTick), () =>
    measure('microtasks', ALL, batches(queueMicrotask), () =>
      measure('set_timeout+clear', ALL, timers, () =>
        measure('20,000 short lines through createWriteStream', LINES, lines, () => {})))));
