// `worker_threads`: workers emit what Rust reports of them.
(function (natives, internal) {
  'use strict';
  const { coded, invalidType, hide, notImplemented } = internal;
  const EventEmitter = internal.builtin('events');
  const path = internal.builtin('path');
  const ports = internal.builtin('ports');
  const { MessageChannel, MessagePort, receiveMessageOnPort } = ports;
  const threadId = natives.threadId();
  const isMainThread = threadId === 0;
  const copied = internal.copyMessage;
  internal.setStack = (error, stack) => hide(error, 'stack', stack);

  const known = ['eval', 'workerData', 'argv', 'env', 'execArgv', 'name', 'trackUnmanagedFds'];
  class Worker extends EventEmitter {
    #native;
    constructor(file, options = {}) {
      super();
      internal.needObject(options, 'options');
      for (const key of Object.keys(options)) {
        if (options[key] !== undefined && !known.includes(key)) throw notImplemented(`The option "${key}" of a worker`);
      }
      const isSource = !!options.eval;
      if (typeof file !== 'string') {
        if (isSource || file?.protocol !== 'file:') throw invalidType('filename', ['string', 'URL'], file);
        file = decodeURIComponent(file.pathname);
      } else if (!isSource) {
        if (!path.isAbsolute(file) && !/^\.\.?[\\/]/.test(file)) {
          throw coded(TypeError, 'ERR_WORKER_PATH', `The worker script or module filename must be an absolute path or a relative path starting with './' or '../'. Received "${file}"`);
        }
        file = path.resolve(file);
      }
      const { argv = [], env, workerData } = options;
      if (!Array.isArray(argv)) throw invalidType('options.argv', 'Array', argv);
      if (env !== undefined && env !== null && typeof env !== 'object') throw invalidType('options.env', ['object', 'undefined', 'null', 'worker_threads.SHARE_ENV'], env);
      const pairs = [];
      const all = env ?? process.env;
      for (const key in all) if (all[key] !== undefined) pairs.push(key, `${all[key]}`);
      const list = [process.execPath, isSource ? '[worker eval]' : file, ...argv].map((it) => `${it}`);
      this.#native = copied(workerData, () => natives.worker(file, isSource, list, pairs, workerData, (name, value) => {
        if (value === undefined && name !== 'message') this.emit(name);
        else this.emit(name, value);
      }));
    }
    get threadId() { return this.#native('threadId'); }
    postMessage(value, list) {
      if (list?.length > 0 || list?.transfer?.length > 0) throw notImplemented('A list of what is transferred');
      copied(value, () => this.#native('post', value));
    }
    terminate() { return this.#native('terminate'); }
    ref() { this.#native('ref', true); }
    unref() { this.#native('ref', false); }
  }

  // Channels that are open and have a listener are kept.
  const active = new Set();
  class BroadcastChannel extends EventTarget {
    #native;
    #name;
    #count = 0;
    #closed = false;
    constructor(name) {
      if (arguments.length === 0) throw coded(TypeError, 'ERR_MISSING_ARGS', 'The "name" argument must be specified');
      super();
      this.#name = `${name}`;
      this.#native = natives.broadcast(this.#name, (data) => this.dispatchEvent(internal.messageEvent(data)));
    }
    get name() { return this.#name; }
    #listen(change) {
      const before = this.#count;
      this.#count += change;
      if (this.#closed || (before > 0) === (this.#count > 0)) return;
      this.#native('listen', this.#count > 0);
      if (this.#count > 0) active.add(this);
      else active.delete(this);
    }
    addEventListener(name, ...rest) {
      const before = internal.targetListeners(this, name).length;
      super.addEventListener(name, ...rest);
      if (name === 'message') this.#listen(internal.targetListeners(this, name).length - before);
    }
    removeEventListener(name, ...rest) {
      const before = internal.targetListeners(this, name).length;
      super.removeEventListener(name, ...rest);
      if (name === 'message') this.#listen(internal.targetListeners(this, name).length - before);
    }
    postMessage(value) {
      if (arguments.length === 0) throw coded(TypeError, 'ERR_MISSING_ARGS', 'The "message" argument must be specified');
      if (this.#closed) throw new DOMException('BroadcastChannel is closed.', 'InvalidStateError');
      copied(value, () => this.#native('post', value));
    }
    close() {
      if (this.#closed) return;
      this.#closed = true;
      active.delete(this);
      this.#native('close');
    }
    ref() { this.#native('ref', true); return this; }
    unref() { this.#native('ref', false); return this; }
  }
  internal.defineHandler(BroadcastChannel.prototype, 'message');
  internal.defineHandler(BroadcastChannel.prototype, 'messageerror');

  const port = natives.parentPort();
  return {
    BroadcastChannel, MessageChannel, MessagePort, Worker, isMainThread, receiveMessageOnPort, threadId,
    parentPort: port === undefined ? null : ports.portOf(port), workerData: natives.workerData(), resourceLimits: {},
    SHARE_ENV: Symbol.for('nodejs.worker_threads.SHARE_ENV'),
    getEnvironmentData: (key) => natives.environmentData(`${key}`),
    setEnvironmentData: (key, value) => copied(value, () => natives.setEnvironmentData(`${key}`, value)),
  };
})
