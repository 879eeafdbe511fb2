// `events`: the class of emitters, `once` and `on`.
(function (natives, internal) {
  'use strict';
  const { apply, copy, prepended, coded, invalidType, needFunction, hide } = internal;
  const kError = Symbol('events.errorMonitor');
  const kCapture = Symbol('kCapture');
  const kRejection = Symbol.for('nodejs.rejection');
  let defaultMax = 10;
  let captureByDefault = false;

  const needCount = (value, name) => {
    if (typeof value !== 'number') throw invalidType(name, 'number', value);
    if (!(value >= 0)) throw internal.outOfRange(name, '>= 0', value);
  };

  function EventEmitter(options) {
    apply(EventEmitter.init, this, [options]);
  }
  EventEmitter.init = function (options) {
    if (this._events === undefined || this._events === Object.getPrototypeOf(this)._events) {
      this._events = { __proto__: null };
      this._eventsCount = 0;
    }
    this._maxListeners = this._maxListeners || undefined;
    if (options && options.captureRejections !== undefined) {
      if (typeof options.captureRejections !== 'boolean') throw invalidType('options.captureRejections', 'boolean', options.captureRejections);
      hide(this, kCapture, options.captureRejections);
    } else if (captureByDefault) hide(this, kCapture, true);
  };
  const proto = EventEmitter.prototype;
  proto._events = undefined;
  proto._eventsCount = 0;
  proto._maxListeners = undefined;
  hide(proto, kCapture, false);

  proto.setMaxListeners = function setMaxListeners(n) {
    needCount(n, 'setMaxListeners');
    this._maxListeners = n;
    return this;
  };
  const limitOf = (emitter) => (emitter._maxListeners === undefined ? defaultMax : emitter._maxListeners);
  proto.getMaxListeners = function getMaxListeners() { return limitOf(this); };

  const listOf = (emitter, type) => {
    const events = emitter._events;
    const found = events === undefined ? undefined : events[type];
    return found === undefined ? [] : typeof found === 'function' ? [found] : found;
  };

  function rejected(emitter, error, type, args) {
    if (typeof emitter[kRejection] === 'function') apply(emitter[kRejection], emitter, prepended(error, prepended(type, args)));
    else {
      const before = emitter[kCapture];
      try {
        emitter[kCapture] = false;
        emitter.emit('error', error);
      } finally {
        emitter[kCapture] = before;
      }
    }
  }

  proto.emit = function emit(type, ...args) {
    const events = this._events;
    if (type === 'error') {
      if (events !== undefined && events[kError] !== undefined) apply(this.emit, this, prepended(kError, args));
      if (events === undefined || events.error === undefined) {
        const error = args[0];
        if (error instanceof Error) throw error;
        const util = internal.builtin('util');
        const shown = args.length > 0 ? util.inspect(error) : error;
        const made = coded(Error, 'ERR_UNHANDLED_ERROR', `Unhandled error. (${shown})`);
        made.context = error;
        throw made;
      }
    }
    const handler = events === undefined ? undefined : events[type];
    if (handler === undefined) return false;
    const list = typeof handler === 'function' ? [handler] : copy(handler);
    for (let i = 0; i < list.length; i++) {
      const result = apply(list[i], this, args);
      if (result !== undefined && result !== null && this[kCapture]) {
        const { then } = result;
        if (typeof then === 'function') {
          apply(then, result, [undefined, (error) => process.nextTick(rejected, this, error, type, args)]);
        }
      }
    }
    return true;
  };

  function add(emitter, type, listener, first) {
    needFunction(listener, 'listener');
    let events = emitter._events;
    if (events === undefined) {
      events = emitter._events = { __proto__: null };
      emitter._eventsCount = 0;
    } else if (events.newListener !== undefined) {
      emitter.emit('newListener', type, listener.listener ?? listener);
      events = emitter._events;
    }
    const found = events[type];
    if (found === undefined) {
      events[type] = listener;
      emitter._eventsCount++;
      return emitter;
    }
    if (typeof found === 'function') events[type] = first ? [listener, found] : [found, listener];
    else if (first) (events[type] = prepended(listener, found)).warned = found.warned;
    else found[found.length] = listener;
    const list = events[type];
    const limit = limitOf(emitter);
    if (limit > 0 && list.length > limit && !list.warned) {
      list.warned = true;
      const name = emitter.constructor && emitter.constructor.name;
      const warning = new Error(
        `Possible EventEmitter memory leak detected. ${list.length} ${String(type)} listeners added to ` +
        `${internal.builtin('util').inspect(emitter, { depth: -1 })}. MaxListeners is ${limit}. Use emitter.setMaxListeners() to increase limit`);
      warning.name = 'MaxListenersExceededWarning';
      warning.emitter = emitter;
      warning.type = type;
      warning.count = list.length;
      void name;
      process.emitWarning(warning);
    }
    return emitter;
  }
  proto.addListener = function addListener(type, listener) { return add(this, type, listener, false); };
  proto.on = proto.addListener;
  proto.prependListener = function prependListener(type, listener) { return add(this, type, listener, true); };

  function wrapOnce(emitter, type, listener) {
    const state = { fired: false };
    const wrapper = function (...args) {
      if (state.fired) return undefined;
      emitter.removeListener(type, wrapper);
      state.fired = true;
      return apply(listener, emitter, args);
    };
    wrapper.listener = listener;
    return wrapper;
  }
  proto.once = function once(type, listener) {
    needFunction(listener, 'listener');
    this.on(type, wrapOnce(this, type, listener));
    return this;
  };
  proto.prependOnceListener = function prependOnceListener(type, listener) {
    needFunction(listener, 'listener');
    this.prependListener(type, wrapOnce(this, type, listener));
    return this;
  };

  proto.removeListener = function removeListener(type, listener) {
    needFunction(listener, 'listener');
    const events = this._events;
    const found = events === undefined ? undefined : events[type];
    if (found === undefined) return this;
    if (found === listener || found.listener === listener) {
      this._eventsCount -= 1;
      if (this._eventsCount === 0) this._events = { __proto__: null };
      else delete events[type];
      if (events.removeListener) this.emit('removeListener', type, found.listener || listener);
    } else if (typeof found !== 'function') {
      let place = -1;
      for (let i = found.length - 1; i >= 0; i--) {
        if (found[i] === listener || found[i].listener === listener) {
          place = i;
          break;
        }
      }
      if (place < 0) return this;
      for (let i = place + 1; i < found.length; i++) found[i - 1] = found[i];
      found.length--;
      if (found.length === 1) events[type] = found[0];
      if (events.removeListener !== undefined) this.emit('removeListener', type, listener);
    }
    return this;
  };
  proto.off = proto.removeListener;

  proto.removeAllListeners = function removeAllListeners(type) {
    const events = this._events;
    if (events === undefined) return this;
    if (events.removeListener === undefined) {
      if (arguments.length === 0) {
        this._events = { __proto__: null };
        this._eventsCount = 0;
      } else if (events[type] !== undefined) {
        this._eventsCount -= 1;
        if (this._eventsCount === 0) this._events = { __proto__: null };
        else delete events[type];
      }
      return this;
    }
    if (arguments.length === 0) {
      const keys = internal.keysOf(events);
      for (let i = 0; i < keys.length; i++) {
        if (keys[i] !== 'removeListener') this.removeAllListeners(keys[i]);
      }
      this.removeAllListeners('removeListener');
      this._events = { __proto__: null };
      this._eventsCount = 0;
      return this;
    }
    const list = copy(listOf(this, type));
    for (let i = list.length - 1; i >= 0; i--) this.removeListener(type, list[i]);
    return this;
  };
  proto.listeners = function listeners(type) { return copy(listOf(this, type), (f) => f.listener || f); };
  proto.rawListeners = function rawListeners(type) { return copy(listOf(this, type)); };
  proto.listenerCount = function listenerCount(type, listener) {
    const list = listOf(this, type);
    if (listener == null) return list.length;
    let count = 0;
    for (let i = 0; i < list.length; i++) if (list[i] === listener || list[i].listener === listener) count++;
    return count;
  };
  proto.eventNames = function eventNames() { return this._eventsCount > 0 ? internal.keysOf(this._events) : []; };

  const isTarget = (emitter) => typeof emitter.addEventListener === 'function';
  const listen = (emitter, name, listener, once) => {
    if (typeof emitter.on === 'function') once ? emitter.once(name, listener) : emitter.on(name, listener);
    else if (isTarget(emitter)) emitter.addEventListener(name, listener, { once });
    else throw invalidType('emitter', 'EventEmitter', emitter);
  };
  const unlisten = (emitter, name, listener) => {
    if (typeof emitter.removeListener === 'function') emitter.removeListener(name, listener);
    else emitter.removeEventListener(name, listener);
  };

  EventEmitter.once = async function once(emitter, name, options = {}) {
    internal.needObject(options, 'options');
    const { signal } = options;
    internal.needSignal(signal, 'options.signal');
    if (signal && signal.aborted) throw internal.abortError(signal.reason);
    return new Promise((resolve, reject) => {
      const failed = (error) => {
        unlisten(emitter, name, happened);
        if (signal) signal.removeEventListener('abort', aborted);
        reject(error);
      };
      const happened = (...args) => {
        if (typeof emitter.removeListener === 'function') emitter.removeListener('error', failed);
        if (signal) signal.removeEventListener('abort', aborted);
        resolve(args);
      };
      const aborted = () => {
        unlisten(emitter, name, happened);
        unlisten(emitter, 'error', failed);
        reject(internal.abortError(signal.reason));
      };
      listen(emitter, name, happened, true);
      if (name !== 'error' && typeof emitter.once === 'function') emitter.once('error', failed);
      if (signal) signal.addEventListener('abort', aborted, { once: true });
    });
  };

  // An option: the values are the first arguments, not lists.
  internal.kFirst = Symbol('first');
  EventEmitter.on = function on(emitter, event, options = {}) {
    internal.needObject(options, 'options');
    const { signal } = options;
    internal.needSignal(signal, 'options.signal');
    if (signal && signal.aborted) throw internal.abortError(signal.reason);
    const isFirst = options[internal.kFirst] === true;
    const high = options.highWaterMark ?? options.highWatermark ?? Number.MAX_SAFE_INTEGER;
    const low = options.lowWaterMark ?? options.lowWatermark ?? 1;
    const events = [];
    const waiting = [];
    let error = null;
    let finished = false;
    let paused = false;
    let removals = [];
    const add = (target, name, listener) => {
      listen(target, name, listener, false);
      removals.push(() => unlisten(target, name, listener));
    };
    const result = (value, done) => ({ done, value });
    const close = () => {
      for (const remove of removals) remove();
      removals = [];
      finished = true;
      const doneResult = result(undefined, true);
      for (const promise of waiting.splice(0)) promise.resolve(doneResult);
      return Promise.resolve(doneResult);
    };
    const failed = (reason) => {
      if (waiting.length === 0) error = reason;
      else waiting.shift().reject(reason);
      close();
    };
    const happened = (...all) => {
      const args = isFirst ? all[0] : all;
      if (waiting.length === 0) {
        events.push(args);
        if (!paused && events.length > high) {
          paused = true;
          emitter.pause();
        }
      } else waiting.shift().resolve(result(args, false));
    };
    const iterator = {
      next() {
        if (events.length) {
          const value = events.shift();
          if (paused && events.length < low) {
            emitter.resume();
            paused = false;
          }
          return Promise.resolve(result(value, false));
        }
        if (error) {
          const rejection = Promise.reject(error);
          error = null;
          return rejection;
        }
        if (finished) return close();
        return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
      },
      return() { return close(); },
      throw(reason) {
        if (!reason || !(reason instanceof Error)) throw invalidType('EventEmitter.AsyncIterator', 'Error', reason);
        failed(reason);
      },
      [Symbol.asyncIterator]() { return this; },
    };
    Object.setPrototypeOf(iterator, Object.getPrototypeOf(Object.getPrototypeOf(async function* () {}).prototype));
    add(emitter, event, happened);
    if (event !== 'error' && typeof emitter.on === 'function') add(emitter, 'error', failed);
    for (const name of options.close ?? []) add(emitter, name, close);
    if (signal) {
      const aborted = () => failed(internal.abortError(signal.reason));
      signal.addEventListener('abort', aborted, { once: true });
      removals.push(() => signal.removeEventListener('abort', aborted));
    }
    return iterator;
  };

  EventEmitter.getEventListeners = (emitter, name) => {
    if (typeof emitter.listeners === 'function') return emitter.listeners(name);
    return internal.targetListeners(emitter, name);
  };
  EventEmitter.getMaxListeners = (emitter) => (typeof emitter.getMaxListeners === 'function' ? emitter.getMaxListeners() : emitter[internal.kMax] ?? defaultMax);
  EventEmitter.setMaxListeners = (n = defaultMax, ...targets) => {
    needCount(n, 'setMaxListeners');
    if (targets.length === 0) defaultMax = n;
    for (const target of targets) {
      if (typeof target.setMaxListeners === 'function') target.setMaxListeners(n);
      else target[internal.kMax] = n;
    }
  };
  EventEmitter.listenerCount = (emitter, name) => emitter.listenerCount(name);
  EventEmitter.addAbortListener = (signal, listener) => {
    needFunction(listener, 'listener');
    if (signal.aborted) queueMicrotask(() => listener());
    else signal.addEventListener('abort', listener, { once: true });
    return { [Symbol.dispose ?? Symbol.for('Symbol.dispose')]() { signal.removeEventListener('abort', listener); } };
  };
  EventEmitter.errorMonitor = kError;
  EventEmitter.captureRejectionSymbol = kRejection;
  Object.defineProperty(EventEmitter, 'captureRejections', {
    get: () => captureByDefault,
    set: (value) => { captureByDefault = value; },
    enumerable: true,
  });
  Object.defineProperty(EventEmitter, 'defaultMaxListeners', {
    get: () => defaultMax,
    set: (value) => { needCount(value, 'defaultMaxListeners'); defaultMax = value; },
    enumerable: true,
  });
  EventEmitter.EventEmitter = EventEmitter;

  let Resourced;
  const makeResourced = () => {
    const { AsyncResource } = internal.builtin('async_hooks');
    class EventEmitterReferencingAsyncResource extends AsyncResource {
      #emitter;
      constructor(emitter, type, options) {
        super(type, options);
        this.#emitter = emitter;
      }
      get eventEmitter() { return this.#emitter; }
    }
    return class EventEmitterAsyncResource extends EventEmitter {
      #resource;
      constructor(options = undefined) {
        const name = typeof options === 'string' ? options : options?.name || new.target.name;
        super(typeof options === 'string' ? undefined : options);
        this.#resource = new EventEmitterReferencingAsyncResource(this, name, typeof options === 'string' ? undefined : options);
      }
      emit(event, ...args) {
        return this.#resource.runInAsyncScope(super.emit, this, event, ...args);
      }
      emitDestroy() { this.#resource.emitDestroy(); }
      get asyncId() { return this.#resource.asyncId(); }
      get triggerAsyncId() { return this.#resource.triggerAsyncId(); }
      get asyncResource() { return this.#resource; }
    };
  };
  Object.defineProperty(EventEmitter, 'EventEmitterAsyncResource', { get: () => (Resourced ??= makeResourced()), enumerable: true, configurable: true });
  return EventEmitter;
})
