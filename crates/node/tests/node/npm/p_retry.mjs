// What p_retry.rs does, with the package: npm install p-retry@7.1.1; node p_retry.mjs > p_retry.expected
import pRetry, { AbortError, makeRetriable } from 'p-retry';

const log = (text) => console.log(text);
let start = 0;
const stamp = (text) => log(`${text}@${Math.round((performance.now() - start) / 50) * 50}`);
const part = (name) => { log(`== ${name}`); start = performance.now(); };
const report = (promise) => promise.then(
  (value) => stamp(`value ${value}`), (error) => stamp(`${error.name}: ${error.message}`));
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
// Fails until the given attempt.
const until = (last) => async (attempt) => {
  stamp(`attempt ${attempt}`);
  if (attempt < last) throw new Error(`no ${attempt}`);
  return attempt;
};
const onFailedAttempt = ({ error, attemptNumber, retriesLeft, retriesConsumed }) => {
  log(`failed ${error.message}: ${attemptNumber} ${retriesLeft} ${retriesConsumed}`);
};
const ladder = (steps) => {
  let step = 0;
  const next = () => { log(`tick ${++step}`); if (step < steps) queueMicrotask(next); };
  queueMicrotask(next);
};

part('delays');
await report(pRetry(until(4), { minTimeout: 100, onFailedAttempt }));
part('no retries left');
await report(pRetry(until(9), { minTimeout: 100, retries: 2, onFailedAttempt }));
part('factor');
await report(pRetry(until(5), { minTimeout: 100, factor: 3, maxTimeout: 300 }));
part('no factor');
await report(pRetry(until(3), { minTimeout: 100, factor: 0, retries: Infinity, onFailedAttempt }));
part('time for retries');
await report(pRetry(async (attempt) => {
  stamp(`attempt ${attempt}`);
  await sleep(50);
  throw new Error(`no ${attempt}`);
}, { minTimeout: 100, maxRetryTime: 230 }));

part('microtasks');
{
  const ended = report(pRetry(until(3), { minTimeout: 0, onFailedAttempt }));
  ladder(20);
  await ended;
  await sleep(10);
}

part('errors');
await report(pRetry(() => { throw new AbortError('stop'); }, { onFailedAttempt }));
await report(pRetry(async () => { throw new AbortError(new RangeError('inner')); }, { onFailedAttempt }));
await report(pRetry(() => { throw new TypeError('a fault of the program'); }, { onFailedAttempt }));
part('network errors');
await report(pRetry((n) => { if (n < 3) throw new TypeError('fetch failed'); return n; }, { minTimeout: 50, onFailedAttempt }));
part('functions of the options');
await report(pRetry(until(9), { minTimeout: 50, onFailedAttempt: () => { throw new Error('enough'); } }));
await report(pRetry(until(9), { minTimeout: 50, shouldRetry: ({ attemptNumber }) => attemptNumber < 2 }));

part('retries that do not count');
await report(pRetry(until(5), {
  retries: 1, minTimeout: 100, onFailedAttempt, shouldConsumeRetry: async ({ attemptNumber }) => attemptNumber % 2 === 0,
}));

part('signal');
{
  const controller = new AbortController();
  setTimeout(() => controller.abort(new Error('aborted')), 150);
  await report(pRetry(until(9), { minTimeout: 100, signal: controller.signal, onFailedAttempt }));
  await report(pRetry(until(1), { signal: controller.signal }));
}

part('options');
await report(pRetry(until(1), { retries: -1 }));
await report(pRetry(until(1), { retries: NaN }));
await report(pRetry(until(1), { factor: -1 }));
await report(pRetry(until(1), { minTimeout: Infinity }));
{
  const twice = makeRetriable(async (a, b) => { stamp(`called ${a} ${b}`); if (a !== b) throw new Error('differ'); return a; }, { retries: 1, minTimeout: 50 });
  await report(twice(1, 1));
  await report(twice(1, 2));
}
