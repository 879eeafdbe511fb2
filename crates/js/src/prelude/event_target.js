// `EventTarget`, `Event`, `AbortController` and `AbortSignal`: programs extend these classes.
(function (natives, internal) {
  'use strict';
  const { coded, invalidType } = internal;
  const kListeners = Symbol('listeners');
  const kMax = Symbol('maxEventTargetListeners');
  internal.kMax = kMax;
  const kTarget = Symbol('target');
  const kStop = Symbol('stop');
  const kTrusted = Symbol('trusted');

  class Event {
    #type;
    #cancelable;
    #bubbles;
    #composed;
    #time = Number(natives.hrtime()) / 1e6;
    #phase = 0;
    constructor(type, options = undefined) {
      if (arguments.length === 0) throw coded(TypeError, 'ERR_MISSING_ARGS', 'The "type" argument must be specified');
      if (options != null && typeof options !== 'object') throw invalidType('options', 'Object', options);
      this.#type = `${type}`;
      this.#bubbles = !!options?.bubbles;
      this.#cancelable = !!options?.cancelable;
      this.#composed = !!options?.composed;
      internal.hide(this, kTarget, null);
      internal.hide(this, kStop, false);
      internal.hide(this, 'prevented', false);
    }
    get type() { return this.#type; }
    get target() { return this[kTarget]; }
    get currentTarget() { return this.#phase === 2 ? this[kTarget] : null; }
    get srcElement() { return this[kTarget]; }
    get bubbles() { return this.#bubbles; }
    get cancelable() { return this.#cancelable; }
    get composed() { return this.#composed; }
    get defaultPrevented() { return this.#cancelable && this.prevented; }
    get returnValue() { return !this.defaultPrevented; }
    get timeStamp() { return this.#time; }
    get eventPhase() { return this.#phase; }
    get cancelBubble() { return this.#stopped; }
    get isTrusted() { return this[kTrusted] === true; }
    #stopped = false;
    composedPath() { return this.#phase === 2 ? [this[kTarget]] : []; }
    preventDefault() { this.prevented = true; }
    stopPropagation() { this.#stopped = true; }
    stopImmediatePropagation() { this[kStop] = true; }
    static begin(event, target) { event[kTarget] = target; event.#phase = 2; }
    static end(event) { event.#phase = 0; }
    static isDispatching(event) { return event.#phase === 2; }
  }
  for (const [name, value] of [['NONE', 0], ['CAPTURING_PHASE', 1], ['AT_TARGET', 2], ['BUBBLING_PHASE', 3]]) Event[name] = value;
  const { begin, end, isDispatching } = Event;
  delete Event.begin;
  delete Event.end;
  delete Event.isDispatching;

  class CustomEvent extends Event {
    #detail;
    constructor(type, options) {
      super(type, options);
      this.#detail = options?.detail ?? null;
    }
    get detail() { return this.#detail; }
  }

  const listenersOf = (target, type) => target[kListeners].get(type) ?? [];
  const placeOf = (list, listener, capture) => {
    for (let i = 0; i < list.length; i++) if (list[i].listener === listener && list[i].capture === capture) return i;
    return -1;
  };
  class EventTarget {
    constructor() { init(this); }
    addEventListener(type, listener, options = {}) {
      if (arguments.length < 2) throw coded(TypeError, 'ERR_MISSING_ARGS', 'The "type" and "listener" arguments must be specified');
      const { once = false, capture = false, signal } = typeof options === 'boolean' ? { capture: options } : options ?? {};
      if (listener == null) {
        const warning = new Error(`addEventListener called with ${listener} which has no effect.`);
        warning.name = 'AddEventListenerArgumentTypeWarning';
        warning.target = this;
        warning.type = type;
        process.emitWarning(warning);
        return;
      }
      if (typeof listener !== 'function' && typeof listener !== 'object') throw invalidType('listener', 'EventListener', listener);
      internal.needSignal(signal, 'options.signal');
      if (signal?.aborted) return;
      type = `${type}`;
      let list = this[kListeners].get(type);
      if (!list) this[kListeners].set(type, (list = []));
      if (placeOf(list, listener, !!capture) >= 0) return;
      const entry = { listener, capture: !!capture, once: !!once, removed: false };
      if (signal) signal.addEventListener('abort', () => this.removeEventListener(type, listener, options), { once: true });
      list[list.length] = entry;
      const limit = this[kMax] ?? internal.builtin('events').defaultMaxListeners;
      if (limit > 0 && list.length > limit && !list.warned) {
        list.warned = true;
        const kind = this instanceof AbortSignal ? '[AbortSignal]' : this.constructor.name;
        const warning = new Error(`Possible EventTarget memory leak detected. ${list.length} ${type} listeners added to ${kind}. ` +
          `MaxListeners is ${limit}. Use events.setMaxListeners() to increase limit`);
        warning.name = 'MaxListenersExceededWarning';
        warning.target = this;
        warning.type = type;
        warning.count = list.length;
        process.emitWarning(warning);
      }
      this[internal.kAdded]?.(type, list.length);
    }
    removeEventListener(type, listener, options = {}) {
      type = `${type}`;
      const capture = !!(typeof options === 'boolean' ? options : options?.capture);
      const list = listenersOf(this, type);
      const place = placeOf(list, listener, capture);
      if (place < 0) return;
      list[place].removed = true;
      for (let i = place + 1; i < list.length; i++) list[i - 1] = list[i];
      list.length--;
      this[internal.kRemoved]?.(type, list.length);
    }
    dispatchEvent(event) {
      if (!(event instanceof Event)) throw invalidType('event', 'Event', event);
      if (isDispatching(event)) throw coded(Error, 'ERR_EVENT_RECURSION', `The event "${event.type}" is already being dispatched`);
      return dispatch(this, event);
    }
    get [Symbol.toStringTag]() { return 'EventTarget'; }
  }
  internal.kAdded = Symbol('added');
  internal.kRemoved = Symbol('removed');
  function init(target) {
    internal.hide(target, kListeners, new internal.SafeMap());
  }
  internal.initTarget = init;
  internal.targetListeners = (target, type) => internal.copy(listenersOf(target, type), (it) => it.listener);

  // An exception of a listener is uncaught on the next tick; the other listeners are called.
  const uncaught = (error) => { process.nextTick(() => { throw error; }); };
  function dispatch(target, event) {
    begin(event, target);
    const list = internal.copy(listenersOf(target, event.type));
    for (let i = 0; i < list.length; i++) {
      const it = list[i];
      if (it.removed) continue;
      if (it.once) target.removeEventListener(event.type, it.listener, it.capture);
      try {
        const { listener } = it;
        const result = typeof listener === 'function' ? internal.apply(listener, target, [event]) : listener.handleEvent?.(event);
        if (result !== undefined && result !== null && typeof result.then === 'function') internal.apply(result.then, result, [undefined, uncaught]);
      } catch (error) {
        uncaught(error);
      }
      if (event[kStop]) break;
    }
    end(event);
    return !event.defaultPrevented;
  }
  internal.dispatch = dispatch;

  // `onabort`, `onmessage`: a listener whose place is that of its first assignment.
  const defineHandler = (prototype, name) => {
    const key = Symbol(`on${name}`);
    Object.defineProperty(prototype, `on${name}`, {
      get() { return this[key]?.f ?? null; },
      set(f) {
        const before = this[key];
        const valid = typeof f === 'function' ? f : null;
        if (before) {
          before.f = valid;
          if (!valid) {
            this.removeEventListener(name, before.listener);
            internal.hide(this, key, undefined);
          }
        } else if (valid) {
          const state = { f: valid, listener: undefined };
          state.listener = function (event) { return state.f === undefined || state.f === null ? undefined : internal.apply(state.f, this, [event]); };
          internal.hide(this, key, state);
          this.addEventListener(name, state.listener);
        }
      },
      configurable: true,
      enumerable: true,
    });
  };
  internal.defineHandler = defineHandler;

  const names = {
    AbortError: 20, DataCloneError: 25, TimeoutError: 23, InvalidStateError: 11, NotFoundError: 8, SyntaxError: 12,
  };
  class DOMException extends Error {
    #name;
    constructor(message = '', options = 'Error') {
      const name = typeof options === 'object' && options !== null ? options.name ?? 'Error' : `${options}`;
      super(`${message}`, typeof options === 'object' && options !== null && 'cause' in options ? { cause: options.cause } : undefined);
      this.#name = name;
    }
    get name() { return this.#name; }
    get code() { return names[this.#name] ?? 0; }
    get [Symbol.toStringTag]() { return 'DOMException'; }
  }
  for (const [name, code] of Object.entries(names)) {
    const constant = `${name.replace(/Error$/, '').replace(/([a-z])([A-Z])/g, '$1_$2').toUpperCase()}_ERR`;
    DOMException[constant] = DOMException.prototype[constant] = code;
  }

  const kAbort = Symbol('abort');
  const own = Symbol('own');
  class AbortSignal extends EventTarget {
    #reason;
    #aborted = false;
    #dependents = new internal.SafeSet();
    #sources = null;
    constructor(key) {
      if (key !== own) throw coded(TypeError, 'ERR_ILLEGAL_CONSTRUCTOR', 'Illegal constructor');
      super();
    }
    get aborted() { return this.#aborted; }
    get reason() { return this.#reason; }
    throwIfAborted() { if (this.#aborted) throw this.#reason; }
    get [Symbol.toStringTag]() { return 'AbortSignal'; }
    [kAbort](reason) {
      if (this.#aborted) return;
      const all = [this];
      this.#dependents.forEach((it) => { if (!it.#aborted) all[all.length] = it; });
      for (let i = 0; i < all.length; i++) {
        all[i].#aborted = true;
        all[i].#reason = reason;
      }
      for (let i = 0; i < all.length; i++) {
        const event = new Event('abort');
        internal.hide(event, kTrusted, true);
        dispatch(all[i], event);
      }
    }
    static abort(reason = new DOMException('This operation was aborted', 'AbortError')) {
      const signal = new AbortSignal(own);
      signal.#aborted = true;
      signal.#reason = reason;
      return signal;
    }
    static timeout(delay) {
      if (typeof delay !== 'number') throw invalidType('delay', 'number', delay);
      if (!Number.isInteger(delay) || delay < 0) throw internal.outOfRange('delay', 'an integer', delay);
      const signal = new AbortSignal(own);
      setTimeout(() => signal[kAbort](new DOMException('The operation was aborted due to timeout', 'TimeoutError')), delay).unref();
      return signal;
    }
    static any(signals) {
      const result = new AbortSignal(own);
      const list = [...signals];
      for (const signal of list) {
        if (!(signal instanceof AbortSignal)) throw invalidType('signals', 'AbortSignal', signal);
      }
      const aborted = list.find((signal) => signal.#aborted);
      if (aborted) {
        result.#aborted = true;
        result.#reason = aborted.#reason;
        return result;
      }
      result.#sources = new Set();
      for (const signal of list) {
        for (const source of signal.#sources ?? [signal]) {
          if (source.#aborted) {
            result.#aborted = true;
            result.#reason = source.#reason;
            return result;
          }
          result.#sources.add(source);
          source.#dependents.add(result);
        }
      }
      return result;
    }
  }
  defineHandler(AbortSignal.prototype, 'abort');

  class AbortController {
    #signal = new AbortSignal(own);
    get signal() { return this.#signal; }
    abort(reason = new DOMException('This operation was aborted', 'AbortError')) { this.#signal[kAbort](reason); }
    get [Symbol.toStringTag]() { return 'AbortController'; }
  }
  // A controller of Rust that follows a signal, and what ends that.
  internal.follow = (signal) => {
    if (signal === undefined || signal === null) return [undefined, () => {}];
    const controller = natives.abortController();
    const abort = () => controller(false, signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
    return [controller, () => signal.removeEventListener('abort', abort)];
  };
  const classes = { Event, CustomEvent, EventTarget, AbortSignal, AbortController, DOMException };
  for (const name of Object.keys(classes)) internal.hide(globalThis, name, classes[name]);
  return classes;
})
