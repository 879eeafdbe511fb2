// What p_queue.rs does, with the package: npm install p-queue@9.3.5; node p_queue.mjs > p_queue.expected
import PQueue from 'p-queue';

const log = (...words) => console.log(words.join(' '));
const sleep = (ms, value) => new Promise((resolve) => setTimeout(resolve, ms, value));
let start = 0;
// The time in steps of 50 ms.
const stamp = (text) => log(`${text}@${Math.round((Date.now() - start) / 50) * 50}`);
const part = (name) => { log(`== ${name}`); start = Date.now(); };
const watch = (queue) => {
  for (const name of ['add', 'active', 'next', 'empty', 'idle', 'pendingZero', 'rateLimit', 'rateLimitCleared']) {
    queue.on(name, () => log(`'${name}' ${queue.size} ${queue.pending}`));
  }
  queue.on('completed', (value) => log(`'completed' ${value}`));
  queue.on('error', (error) => log(`'error' ${error.message}`));
};
const ladder = (steps) => {
  let step = 0;
  const next = () => { log(`tick ${++step}`); if (step < steps) queueMicrotask(next); };
  queueMicrotask(next);
};

part('concurrency');
{
  const queue = new PQueue({ concurrency: 2 });
  [['a', 100], ['b', 50], ['c', 150], ['d', 50]].forEach(([name, delay]) => {
    queue.add(() => { stamp(`start ${name}`); return sleep(delay, name); })
      .then((value) => stamp(`end ${value}`));
  });
  log(queue.size, queue.pending, queue.concurrency, queue.isSaturated);
  queue.onEmpty().then(() => stamp('empty'));
  queue.onSizeLessThan(2).then(() => stamp('less than 2'));
  queue.onPendingZero().then(() => stamp('pending zero'));
  await queue.onIdle();
  stamp('idle');
  await queue.onIdle();
  log(queue.size, queue.pending, queue.isSaturated);
}

part('priority');
{
  const queue = new PQueue({ concurrency: 1, autoStart: false });
  const add = (name, options) => queue.add(async () => { log(name); }, options);
  add('a0');
  add('b2', { priority: 2 });
  add('c1', { priority: 1, id: 'c' });
  add('d2', { priority: 2 });
  add('e-1', { priority: -1, id: 'e' });
  add('f0', { priority: 0, id: 'f' });
  log(queue.sizeBy({ priority: 2 }), queue.sizeBy({ priority: 5 }));
  queue.setPriority('e', 3);
  queue.setPriority('c', -2);
  try { queue.setPriority('x', 1); } catch (error) { log(error.name, error.message); }
  queue.start();
  await queue.onIdle();
}

part('events');
{
  const queue = new PQueue({ concurrency: 1 });
  watch(queue);
  queue.onIdle().then(() => log('idle at once'));
  queue.add(async () => 1).then((value) => log(`value ${value}`));
  queue.add(async () => { throw new Error('no'); }).catch((error) => log(`reason ${error.message}`));
  queue.add(() => { throw new Error('thrown'); }).catch((error) => log(`reason ${error.message}`));
  queue.onIdle().then(() => log('idle'));
  queue.onSizeLessThan(2).then(() => log('less than 2'));
  ladder(16);
  await sleep(20);
}

part('pause');
{
  const queue = new PQueue({ concurrency: 1 });
  watch(queue);
  queue.add(() => sleep(50, 'a'));
  queue.add(() => sleep(50, 'b'));
  queue.pause();
  await sleep(100);
  log(queue.isPaused, queue.size, queue.pending);
  queue.add(() => sleep(50, 'c'));
  queue.start();
  await queue.onEmpty();
  stamp('empty');
  queue.add(() => sleep(50, 'd'));
  queue.clear();
  log(queue.size, queue.pending);
  await queue.onIdle();
  stamp('idle');
}

part('timeout');
{
  const queue = new PQueue({ concurrency: 1, timeout: 100 });
  const report = (promise) => promise.then(
    (value) => stamp(`value ${value}`), (error) => stamp(`${error.name}: ${error.message}`));
  report(queue.add(() => sleep(50, 'quick')));
  report(queue.add(() => sleep(1000, 'slow')));
  report(queue.add(() => sleep(200, 'allowed'), { timeout: 300 }));
  await sleep(100);
  const [task] = queue.runningTasks;
  log(task.id, task.priority, task.timeout, Math.round(task.timeoutRemaining / 50) * 50);
  await queue.onIdle();
  stamp('idle');
  report(queue.add(async () => 1, { timeout: 0 }));
  await sleep(10);
}

part('concurrency at run time');
{
  const queue = new PQueue({ concurrency: 1 });
  for (const name of ['a', 'b', 'c', 'd']) queue.add(() => { stamp(name); return sleep(100); });
  await sleep(50);
  queue.concurrency = 3;
  await queue.onIdle();
  stamp('idle');
  try { queue.concurrency = 0; } catch (error) { log(`${error.name}: ${error.message}`); }
  const values = await queue.addAll([() => sleep(50, 'x'), () => sleep(1, 'y')]);
  log(values);
}

part('interval');
{
  const queue = new PQueue({ intervalCap: 2, interval: 200 });
  watch(queue);
  const add = (name, delay) => queue.add(() => { stamp(name); return sleep(delay, name); });
  for (const name of ['a', 'b', 'c', 'd', 'e']) add(name, 1);
  log(queue.isRateLimited);
  queue.onRateLimit().then(() => stamp('limited'));
  await queue.onRateLimit();
  log(queue.isRateLimited, queue.isSaturated);
  queue.onRateLimitCleared().then(() => stamp('cleared'));
  await queue.onIdle();
  stamp('idle');
  // How often it is emitted from here on depends on whether a timer is late.
  queue.removeAllListeners('empty');
  add('f', 1);
  add('g', 1);
  await queue.onIdle();
  await sleep(300);
  stamp('later');
  add('h', 1);
  await queue.onIdle();
}

part('carry over');
{
  const queue = new PQueue({ intervalCap: 1, interval: 100, carryoverIntervalCount: true });
  for (const name of ['a', 'b', 'c']) queue.add(() => { stamp(name); return sleep(250); });
  await queue.onIdle();
  stamp('idle');
}

part('strict');
{
  const queue = new PQueue({ intervalCap: 2, interval: 200, strict: true });
  const add = (name) => queue.add(() => { stamp(name); });
  add('a');
  await sleep(150);
  for (const name of ['b', 'c', 'd', 'e']) add(name);
  await queue.onIdle();
  stamp('idle');
}

part('signal');
{
  const queue = new PQueue({ concurrency: 1 });
  watch(queue);
  const running = new AbortController();
  const queued = new AbortController();
  const report = (promise) => promise.then(
    (value) => stamp(`value ${value}`), (error) => stamp(`${error.name}: ${error.message}`));
  report(queue.add(() => sleep(500, 'a'), { signal: running.signal }));
  report(queue.add(() => sleep(50, 'b'), { signal: queued.signal }));
  report(queue.add(() => sleep(50, 'c')));
  await sleep(50);
  queued.abort();
  await sleep(50);
  running.abort();
  report(queue.add(() => sleep(50, 'd'), { signal: running.signal }));
  await queue.onIdle();
  stamp('idle');
}

part('first error');
{
  const queue = new PQueue({ concurrency: 2 });
  queue.add(() => sleep(50, 'a'));
  queue.add(async () => { await sleep(100); throw new Error('failed'); }).catch(() => {});
  queue.add(() => sleep(200, 'c'));
  try { await Promise.race([queue.onError(), queue.onIdle()]); } catch (error) { stamp(error.message); }
  await queue.onIdle();
  stamp('idle');
  for (const options of [{ concurrency: 0 }, { intervalCap: 0 }, { timeout: 0 }, { strict: true }, { strict: true, interval: 1 }]) {
    try { new PQueue(options); } catch (error) { log(`${error.name}: ${error.message}`); }
  }
}
