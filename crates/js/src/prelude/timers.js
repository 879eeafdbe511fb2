// Timers and immediates: objects of JavaScript for those of the loop.
(function (natives, internal) {
  'use strict';
  const { apply, needFunction } = internal;
  const active = Symbol('id');
  const known = new Map();

  const numbered = (value) => {
    const after = value * 1;
    return after;
  };

  class Timeout {
    constructor(callback, delay, args, repeats) {
      this._onTimeout = callback;
      this._timerArgs = args;
      this._repeat = repeats;
      this._destroyed = false;
      this._idleTimeout = numbered(delay);
      this[active] = 0;
      this._ref = true;
      start(this);
    }
    refresh() {
      if (this._destroyed) return this;
      if (this[active]) natives.timerRefresh(this[active]);
      else start(this);
      return this;
    }
    ref() { this._ref = true; if (this[active]) natives.timerRef(this[active], true); return this; }
    unref() { this._ref = false; if (this[active]) natives.timerRef(this[active], false); return this; }
    hasRef() { return this._ref; }
    close() { clear(this); return this; }
    [Symbol.toPrimitive]() {
      const id = this[active];
      if (id) known.set(id, this);
      this._primitive = id;
      return id;
    }
  }
  if (Symbol.dispose) Timeout.prototype[Symbol.dispose] = function () { clear(this); };

  function start(timer) {
    timer[active] = natives.timerStart(timer, timer._idleTimeout, timer._repeat);
    if (!timer._ref) natives.timerRef(timer[active], false);
  }
  function clear(timer) {
    timer._destroyed = true;
    if (timer[active]) {
      known.delete(timer[active]);
      natives.timerClear(timer[active]);
      timer[active] = 0;
    }
  }
  // Called by the loop. `ended` is the number of a timer that is over unless it was refreshed.
  internal.fireTimer = (timer) => {
    const { _timerArgs: args } = timer;
    if (args === undefined) timer._onTimeout();
    else timer._onTimeout(...args);
  };
  internal.endTimer = (timer, id) => {
    known.delete(id);
    if (timer[active] === id) timer[active] = 0;
  };

  class Immediate {
    constructor(callback, args) {
      this._onImmediate = callback;
      this._argv = args;
      this._destroyed = false;
      this._ref = true;
      this[active] = natives.immediateStart(this);
    }
    ref() { this._ref = true; if (this[active]) natives.immediateRef(this[active], true); return this; }
    unref() { this._ref = false; if (this[active]) natives.immediateRef(this[active], false); return this; }
    hasRef() { return !this._destroyed && this._ref; }
  }
  if (Symbol.dispose) Immediate.prototype[Symbol.dispose] = function () { clearImmediate(this); };
  internal.fireImmediate = (immediate) => {
    immediate[active] = 0;
    const { _argv: args } = immediate;
    try {
      if (args === undefined) immediate._onImmediate();
      else immediate._onImmediate(...args);
    } finally {
      immediate._destroyed = true;
    }
  };

  const rest = (args) => (args.length ? args : undefined);
  function setTimeout(callback, delay, ...args) {
    needFunction(callback, 'callback');
    return new Timeout(callback, delay, rest(args), false);
  }
  function setInterval(callback, delay, ...args) {
    needFunction(callback, 'callback');
    return new Timeout(callback, delay, rest(args), true);
  }
  function setImmediate(callback, ...args) {
    needFunction(callback, 'callback');
    return new Immediate(callback, rest(args));
  }
  function clearTimeout(timer) {
    if (timer instanceof Timeout) return clear(timer);
    if (typeof timer === 'number' || typeof timer === 'string') {
      const found = known.get(Number(timer));
      if (found) clear(found);
    }
    return undefined;
  }
  function clearImmediate(immediate) {
    if (!(immediate instanceof Immediate) || immediate._destroyed) return;
    immediate._destroyed = true;
    if (immediate[active]) natives.immediateClear(immediate[active]);
    immediate[active] = 0;
  }
  function queueMicrotask(callback) {
    needFunction(callback, 'callback');
    natives.queueMicrotask(() => { callback(); });
  }
  void apply;
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
