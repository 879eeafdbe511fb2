// Timers and immediates: objects of JavaScript for those of the loop. Rust creates them.
(function (natives, internal) {
  'use strict';
  const { setTimeout, setInterval, setImmediate, clearTimeout, clearImmediate, queueMicrotask } = natives;

  class Timeout {
    refresh() { return natives.timerRefresh(this); }
    ref() { this._ref = true; natives.timerRef(this, true); return this; }
    unref() { this._ref = false; natives.timerRef(this, false); return this; }
    hasRef() { return this._ref; }
    close() { clearTimeout(this); return this; }
    get _destroyed() { return !natives.timerRef(this); }
    [Symbol.toPrimitive]() { return natives.timerId(this); }
  }
  class Immediate {
    ref() { natives.immediateRef(this, true); return this; }
    unref() { natives.immediateRef(this, false); return this; }
    hasRef() { return natives.immediateRef(this); }
  }
  // What an object has of its own only if it differs.
  for (const [key, value] of [['_repeat', null], ['_ref', true], ['_timerArgs', undefined]]) {
    internal.hide(Timeout.prototype, key, value);
  }
  internal.hide(Immediate.prototype, '_argv', undefined);
  if (Symbol.dispose) {
    Timeout.prototype[Symbol.dispose] = function () { clearTimeout(this); };
    Immediate.prototype[Symbol.dispose] = function () { clearImmediate(this); };
  }
  natives.timerShapes(Timeout.prototype, Immediate.prototype);

  const clearInterval = clearTimeout;
  const timers = { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, clearImmediate };
  const makeGlobal = (name, value) => internal.hide(globalThis, name, value);
  for (const name of Object.keys(timers)) makeGlobal(name, timers[name]);
  makeGlobal('queueMicrotask', queueMicrotask);

  Object.defineProperty(timers, 'promises', { get: () => internal.builtin('timers/promises'), enumerable: true });
  // `util.promisify(setTimeout)` is the promise of `timers/promises`.
  const custom = Symbol.for('nodejs.util.promisify.custom');
  for (const [f, name] of [[setTimeout, 'setTimeout'], [setImmediate, 'setImmediate']]) {
    Object.defineProperty(f, custom, { get: () => internal.builtin('timers/promises')[name], enumerable: true });
  }
  return timers;
})
