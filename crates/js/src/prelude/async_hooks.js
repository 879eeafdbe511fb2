// `async_hooks`: storages and resources. From the first storage on, handlers of promises and the
// rest of async functions run in their frames.
(function (natives, internal) {
  'use strict';
  const { apply, coded, invalidType, needFunction, hide } = internal;
  const { frame, frameForNext } = natives;

  let isInstalled = false;
  function install() {
    if (isInstalled) return;
    isInstalled = true;
    const proto = Promise.prototype;
    const { then, finally: last } = proto;
    const { resolve } = Promise;
    // Reads of `constructor` inside of the engine's own functions are no `await`.
    let quiet = 0;
    // The frame lasts to the end of the job, which settles the promise of `then`.
    const bound = (f, enter, otherwise) => {
      const handler = typeof f === 'function' ? f : otherwise;
      return (value) => {
        enter();
        return handler(value);
      };
    };
    const pass = (value) => value;
    const fail = (reason) => { throw reason; };
    // The frames in which promises were made: a thenable is called in it.
    const frames = new WeakMap();
    const { get, set } = WeakMap.prototype;
    internal.promiseMade = (promise) => {
      const enter = frame();
      if (enter !== undefined) apply(set, frames, [promise, enter]);
    };
    internal.promiseFrame = (promise) => apply(get, frames, [promise]);
    internal.rawThen = (promise, f, g) => {
      quiet++;
      try {
        return apply(then, promise, [f, g]);
      } finally {
        quiet--;
      }
    };
    internal.then = internal.rawThen;
    const patched = {
      then(onFulfilled, onRejected) {
        const enter = frame();
        quiet++;
        try {
          if (enter === undefined) return apply(then, this, [onFulfilled, onRejected]);
          return apply(then, this, [bound(onFulfilled, enter, pass), bound(onRejected, enter, fail)]);
        } finally {
          quiet--;
        }
      },
      finally(onFinally) {
        quiet++;
        try {
          return apply(last, this, [onFinally]);
        } finally {
          quiet--;
        }
      },
    };
    hide(proto, 'then', patched.then);
    hide(proto, 'finally', patched.finally);
    hide(Promise, 'resolve', ({
      resolve(value) {
        quiet++;
        try {
          return apply(resolve, this, [value]);
        } finally {
          quiet--;
        }
      },
    }).resolve);
    Object.defineProperty(proto, 'constructor', {
      get() {
        if (quiet === 0 && this !== proto) {
          const enter = frameForNext();
          if (enter !== undefined) internal.rawThen(this, enter, enter);
        }
        return Promise;
      },
      set(value) {
        Object.defineProperty(this, 'constructor', { value, writable: true, configurable: true, enumerable: this !== proto });
      },
      configurable: true,
      enumerable: false,
    });
  }

  class AsyncLocalStorage {
    #store;
    #default;
    #name;
    constructor(options = {}) {
      internal.needObject(options, 'options');
      if (options.name !== undefined && typeof options.name !== 'string') throw invalidType('options.name', 'string', options.name);
      install();
      this.#store = natives.storage();
      this.#default = options.defaultValue;
      this.#name = options.name ?? '';
    }
    get name() { return this.#name; }
    getStore() {
      const found = this.#store.get();
      return found === null ? this.#default : found[0];
    }
    enterWith(store) { this.#store.enter(store); }
    run(store, f, ...args) {
      const before = this.getStore();
      if (Object.is(before, store)) return apply(f, null, args);
      this.#store.enter(store);
      try {
        return apply(f, null, args);
      } finally {
        this.#store.enter(before);
      }
    }
    exit(f, ...args) { return this.run(undefined, f, ...args); }
    disable() { this.#store.disable(); }
    withScope(store) {
      const before = this.getStore();
      let isOpen = true;
      this.#store.enter(store);
      return {
        [Symbol.dispose ?? Symbol.for('Symbol.dispose')]: () => {
          if (isOpen) this.#store.enter(before);
          isOpen = false;
        },
      };
    }
    static bind(f) { return AsyncResource.bind(f); }
    static snapshot() { return AsyncLocalStorage.bind((f, ...args) => f(...args)); }
  }

  class AsyncResource {
    #resource;
    constructor(type, options = {}) {
      if (typeof type !== 'string') throw invalidType('type', 'string', type);
      if (type === '') throw coded(TypeError, 'ERR_ASYNC_TYPE', `Invalid name for async "type": ${type}`);
      const trigger = typeof options === 'number' ? options : options.triggerAsyncId;
      if (trigger !== undefined && (!Number.isSafeInteger(trigger) || trigger < -1)) {
        throw coded(RangeError, 'ERR_INVALID_ASYNC_ID', `Invalid triggerAsyncId value: ${trigger}`);
      }
      this.#resource = natives.resource(trigger);
    }
    runInAsyncScope(f, thisArg, ...args) { return this.#resource.run(f, thisArg, args); }
    emitDestroy() {
      this.#resource.destroy();
      return this;
    }
    asyncId() { return this.#resource.id(); }
    triggerAsyncId() { return this.#resource.cause(); }
    bind(f, thisArg) {
      needFunction(f, 'fn');
      const resource = this;
      const bound = thisArg === undefined
        ? function (...args) { return resource.runInAsyncScope(f, this, ...args); }
        : (...args) => resource.runInAsyncScope(f, thisArg, ...args);
      Object.defineProperty(bound, 'length', { value: f.length, configurable: true });
      return bound;
    }
    static bind(f, type, thisArg) {
      needFunction(f, 'fn');
      return new AsyncResource(type || f.name || 'bound-anonymous-fn').bind(f, thisArg);
    }
  }

  return {
    AsyncLocalStorage,
    AsyncResource,
    executionAsyncId: () => natives.executionId(),
    triggerAsyncId: () => natives.triggerId(),
    executionAsyncResource: () => ({}),
    createHook: () => { throw internal.notImplemented('async_hooks.createHook()'); },
  };
})
