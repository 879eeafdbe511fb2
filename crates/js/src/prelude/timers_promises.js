// `timers/promises`.
(function (natives, internal) {
  'use strict';
  const { invalidType } = internal;
  // A promise whose methods a program cannot patch. To end in the tick of Node's, the outcome of a
  // timer with a signal passes through one of them before `finally`, and through a plain one after it.
  class Safe extends Promise {}
  for (const key of ['then', 'catch', 'finally']) internal.hide(Safe.prototype, key, Promise.prototype[key]);
  Object.freeze(Safe.prototype);
  const atEnd = (promise, f) => new Promise((resolve, reject) => {
    new Safe((pass, fail) => { internal.then(promise, pass, fail); }).finally(f).then(resolve, reject);
  });
  const check = (options) => {
    if (options === null || typeof options !== 'object') throw invalidType('options', 'Object', options);
    internal.needSignal(options.signal, 'options.signal');
    if (options.ref !== undefined && typeof options.ref !== 'boolean') throw invalidType('options.ref', 'boolean', options.ref);
  };
  const one = (options, start, stop, value) => {
    try {
      check(options);
    } catch (error) {
      return Promise.reject(error);
    }
    const { signal, ref = true } = options;
    if (signal && signal.aborted) return Promise.reject(internal.abortError(signal.reason));
    let aborted;
    let timer;
    const promise = new Promise((resolve, reject) => {
      timer = start(() => resolve(value));
      if (!ref) timer.unref();
      if (signal) {
        aborted = () => {
          stop(timer);
          reject(internal.abortError(signal.reason));
        };
        signal.addEventListener('abort', aborted, { once: true });
      }
    });
    if (!signal) return promise;
    return atEnd(promise, () => signal.removeEventListener('abort', aborted));
  };
  const timers = internal.builtin('timers');
  const { setTimeout: start, clearTimeout, setImmediate: startImmediate, clearImmediate, setInterval: repeat, clearInterval } = timers;
  const setTimeout = (delay, value, options = {}) => {
    if (delay !== undefined && typeof delay !== 'number') return Promise.reject(invalidType('delay', 'number', delay));
    return one(options, (f) => start(f, delay), clearTimeout, value);
  };
  const setImmediate = (value, options = {}) => one(options, (f) => startImmediate(f), clearImmediate, value);

  async function* setInterval(delay, value, options = {}) {
    if (delay !== undefined && typeof delay !== 'number') throw invalidType('delay', 'number', delay);
    check(options);
    const { signal, ref = true } = options;
    if (signal && signal.aborted) throw internal.abortError(signal.reason);
    let pending;
    let aborted;
    let interval;
    try {
      let missed = 0;
      interval = repeat(() => {
        missed++;
        if (pending) {
          pending();
          pending = undefined;
        }
      }, delay);
      if (!ref) interval.unref();
      if (signal) {
        aborted = () => {
          clearInterval(interval);
          if (pending) pending(Promise.reject(internal.abortError(signal.reason)));
          pending = undefined;
        };
        signal.addEventListener('abort', aborted, { once: true });
      }
      while (!(signal && signal.aborted)) {
        if (missed === 0) await new Promise((resolve) => { pending = resolve; });
        for (; missed > 0; missed--) yield value;
      }
      throw internal.abortError(signal.reason);
    } finally {
      clearInterval(interval);
      if (signal) signal.removeEventListener('abort', aborted);
    }
  }
  const scheduler = {
    wait: (delay, options) => setTimeout(delay, undefined, options),
    yield: () => setImmediate(),
  };
  return { setTimeout, setImmediate, setInterval, scheduler };
})
