// `stream`: the shape of streams. State and order are Rust's: an object has the function of its
// stream, and a listener for one of the events in `known` is a listener of Rust.
(function (natives, internal) {
  'use strict';
  const { apply, coded, invalidType, needFunction, hide } = internal;
  const EventEmitter = internal.builtin('events');
  const { Buffer } = internal.builtin('buffer');
  const { asBuffer, encode } = internal;
  const emitter = EventEmitter.prototype;
  const kNative = Symbol('stream');
  const kHeard = Symbol('listeners');
  const kNames = Symbol('names');
  const kCalls = Symbol('calls');
  let lastNumber = 0;
  const kSinks = Symbol('sinks');
  const monitor = EventEmitter.errorMonitor;
  const known = new Set([monitor, 'data', 'end', 'readable', 'resume', 'pause', 'finish', 'drain', 'close', 'prefinish', 'pipe', 'unpipe', 'error']);
  internal.kNative = kNative;
  internal.nativeOf = (object) => object?.[kNative];
  internal.weak = (object) => new WeakRef(object);
  internal.unweak = (weak) => weak.deref();

  function Stream(options) { EventEmitter.call(this, options); }
  Object.setPrototypeOf(Stream, EventEmitter);
  Stream.prototype = Object.create(emitter, { constructor: { value: Stream, writable: true, configurable: true } });

  // Gives an object the stream of Rust, and the lists of its listeners.
  const bind = (object, native, names = known) => {
    hide(object, kNative, native);
    hide(object, kNames, names);
    hide(object, kHeard, new Map());
    hide(object, kCalls, new Map());
    hide(object, kSinks, []);
  };
  internal.bindStream = bind;
  internal.streamEvents = known;
  // Called by Rust: with the function, if the listener was removed by a listener of this event.
  internal.fireListener = (weak, number, removed, ...args) => {
    const object = weak.deref();
    const f = removed ?? object?.[kCalls].get(number);
    if (f !== undefined) apply(f, object, args);
  };
  const isBound = (stream, name) => stream[kNative] !== undefined && stream[kNames].has(name);
  const heard = (stream, name) => stream[kHeard].get(name) ?? [];
  const listen = (stream, name, listener, first) => {
    needFunction(listener, 'listener');
    if (stream._events?.newListener !== undefined) stream.emit('newListener', name, listener.listener ?? listener);
    const entry = { f: listener, number: ++lastNumber };
    if (!stream[kHeard].has(name)) stream[kHeard].set(name, []);
    if (first) heard(stream, name).unshift(entry);
    else heard(stream, name).push(entry);
    stream[kCalls].set(entry.number, listener);
    stream[kNative]('on', stream, name === monitor ? 'errorMonitor' : name, entry.number, first);
    return stream;
  };
  const methods = {
    addListener(name, listener) { return isBound(this, name) ? listen(this, name, listener, false) : apply(emitter.addListener, this, [name, listener]); },
    prependListener(name, listener) { return isBound(this, name) ? listen(this, name, listener, true) : apply(emitter.prependListener, this, [name, listener]); },
    removeListener(name, listener) {
      if (!isBound(this, name)) return apply(emitter.removeListener, this, [name, listener]);
      needFunction(listener, 'listener');
      const list = heard(this, name);
      const place = list.findLastIndex((it) => it.f === listener || it.f.listener === listener);
      if (place < 0) return this;
      const [entry] = list.splice(place, 1);
      this[kNative]('off', entry.number, entry.f);
      this[kCalls].delete(entry.number);
      if (this._events?.removeListener !== undefined) this.emit('removeListener', name, listener);
      return this;
    },
    removeAllListeners(...names) {
      for (const name of names.length ? names.filter((it) => isBound(this, it)) : this[kHeard]?.keys() ?? []) {
        for (const { f } of heard(this, name).slice().reverse()) this.removeListener(name, f);
      }
      return isBound(this, names[0]) ? this : apply(emitter.removeAllListeners, this, names);
    },
    listeners(name) { return isBound(this, name) ? heard(this, name).map(({ f }) => f.listener ?? f) : apply(emitter.listeners, this, [name]); },
    rawListeners(name) { return isBound(this, name) ? heard(this, name).map(({ f }) => f) : apply(emitter.rawListeners, this, [name]); },
    listenerCount(name, listener) {
      if (!isBound(this, name)) return apply(emitter.listenerCount, this, [name, listener]);
      return listener === undefined ? this[kNative]('count', name === monitor ? 'errorMonitor' : name) : this.listeners(name).filter((it) => it === listener).length;
    },
    eventNames() {
      const bound = this[kNative] === undefined ? [] : [...this[kNames]].filter((name) => this.listenerCount(name) > 0);
      return [...apply(emitter.eventNames, this, []), ...bound];
    },
    emit(name, ...args) {
      if (!isBound(this, name)) return apply(emitter.emit, this, [name, ...args]);
      const isHeard = this[kNative]('emit', name === monitor ? 'errorMonitor' : name, args[0]);
      if (isHeard !== undefined) return isHeard;
      // An event that Rust does not emit for a program.
      const list = heard(this, name).slice();
      for (const { f } of list) apply(f, this, args);
      return list.length > 0;
    },
    destroy(error, callback) {
      if (typeof callback === 'function') finished(this, { readable: false, writable: false }, (e) => callback(e ?? null));
      this[kNative]('destroy', error);
      return this;
    },
    _destroy(error, callback) { callback(error); },
    [EventEmitter.captureRejectionSymbol](error) { this.destroy(error); },
  };
  methods.on = methods.addListener;
  methods.off = methods.removeListener;
  const give = (prototype, all) => { for (const key of Reflect.ownKeys(all)) hide(prototype, key, all[key]); };
  give(Stream.prototype, methods);
  const listening = ['addListener', 'on', 'prependListener', 'removeListener', 'off', 'removeAllListeners', 'listeners', 'rawListeners', 'listenerCount', 'eventNames', 'emit'];
  internal.giveListeners = (prototype) => { for (const name of listening) hide(prototype, name, methods[name]); };
  const getters = (prototype, all) => {
    for (const [name, get] of Object.entries(all)) Object.defineProperty(prototype, name, { get, set() {}, configurable: true, enumerable: false });
  };
  const simple = (operation) => function () { return this[kNative]?.(operation); };
  const shared = { destroyed: simple('destroyed'), errored: simple('errored'), closed: simple('closed') };

  const markOf = (options, name) => {
    const mark = options[name] ?? options.highWaterMark;
    if (mark === undefined || mark === null) return undefined;
    if (!Number.isInteger(mark) || mark < 0) throw internal.invalidValue(`options.${options[name] == null ? 'highWaterMark' : name}`, mark);
    return mark;
  };
  const hooks = ['read', 'write', 'writev', 'final', 'destroy', 'construct', 'transform', 'flush'];
  function init(stream, kind, options = {}) {
    options ??= {};
    EventEmitter.call(stream, options);
    for (const name of hooks) {
      if (typeof options[name] === 'function') stream[`_${name}`] = options[name];
    }
    const has = (name) => typeof stream[name] === 'function';
    const settings = {
      readableObjectMode: !!(options.readableObjectMode || options.objectMode), writableObjectMode: !!(options.writableObjectMode || options.objectMode),
      readableHighWaterMark: markOf(options, 'readableHighWaterMark'), writableHighWaterMark: markOf(options, 'writableHighWaterMark'),
      noAutoDestroy: options.autoDestroy === false, notHalfOpen: options.allowHalfOpen === false,
      construct: has('_construct'), final: has('_final'), writev: has('_writev'), flush: has('_flush'),
    };
    hide(stream, 'streamSettings', { ...settings, decodes: options.decodeStrings !== false, encoding: options.defaultEncoding ?? 'utf8' });
    bind(stream, natives.stream(stream, kind, settings));
    if (options.encoding) stream.setEncoding(options.encoding);
    if (options.signal) addAbortSignal(options.signal, stream);
  }

  // What is written to or read from a stream of bytes.
  const bytesOf = (chunk, encoding, name = 'chunk') => {
    if (typeof chunk === 'string') return encode(chunk, encoding);
    if (chunk instanceof Buffer) return chunk;
    if (ArrayBuffer.isView(chunk)) return asBuffer(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    throw invalidType(name, ['string', 'Buffer', 'TypedArray', 'DataView'], chunk);
  };
  internal.invalidChunk = (chunk) => invalidType('chunk', ['string', 'Buffer', 'TypedArray', 'DataView'], chunk);
  internal.bytesOfChunk = bytesOf;
  internal.writeArgs = (chunk, isObject, callback) => {
    if (isObject) return [chunk, 'utf8', callback];
    if (typeof chunk === 'string') return [chunk, 'utf8', callback];
    return [bytesOf(chunk), 'buffer', callback];
  };

  function Readable(options) {
    if (!(this instanceof Readable)) return new Readable(options);
    init(this, 'readable', options);
  }
  Object.setPrototypeOf(Readable, Stream);
  Readable.prototype = Object.create(Stream.prototype, { constructor: { value: Readable, writable: true, configurable: true } });
  const isObjects = (stream, side) => stream.streamSettings?.[side] === true;
  const add = (stream, operation, chunk, encoding) => {
    if (chunk === null) return stream[kNative]('pushEnd');
    if (isObjects(stream, 'readableObjectMode')) return stream[kNative](operation, chunk);
    if (chunk === undefined) return true;
    let bytes;
    try {
      bytes = bytesOf(chunk, encoding ?? stream.streamSettings?.encoding);
    } catch (error) {
      stream.destroy(error);
      return false;
    }
    return stream[kNative](operation, bytes);
  };
  const readable = {
    push(chunk, encoding) { return add(this, 'push', chunk, encoding); },
    unshift(chunk, encoding) { return add(this, 'unshift', chunk, encoding); },
    read(size) { return this[kNative]('read', size === undefined ? undefined : Number.parseInt(size, 10)); },
    pause() { this[kNative]('pause'); return this; },
    resume() { this[kNative]('resume'); return this; },
    isPaused() { return this[kNative]('isPaused'); },
    setEncoding(encoding) {
      const name = natives.encodingName(`${encoding ?? 'utf8'}`);
      if (name === undefined) throw coded(TypeError, 'ERR_UNKNOWN_ENCODING', `Unknown encoding: ${encoding}`);
      this[kNative]('setEncoding', name);
      hide(this, 'decodesTo', name);
      return this;
    },
    pipe(sink, options) {
      if (sink?.[kNative] === undefined) throw invalidType('dest', 'Stream', sink);
      this[kSinks].push(sink);
      this[kNative]('pipe', sink, options?.end !== false && sink !== process.stdout && sink !== process.stderr);
      return sink;
    },
    unpipe(sink) {
      for (const it of sink === undefined ? this[kSinks].splice(0) : [sink]) {
        const place = this[kSinks].indexOf(it);
        if (place >= 0) this[kSinks].splice(place, 1);
        this[kNative]('unpipe', it);
      }
      return this;
    },
    _read() { throw coded(Error, 'ERR_METHOD_NOT_IMPLEMENTED', 'The _read() method is not implemented'); },
    wrap() { throw internal.notImplemented('readable.wrap()'); },
    [Symbol.asyncIterator]() { return chunksOf(this); },
    iterator(options) { return chunksOf(this, options); },
  };
  give(Readable.prototype, readable);
  if (Symbol.asyncDispose) {
    hide(Readable.prototype, Symbol.asyncDispose, function () {
      const error = this.destroyed || this.readableEnded ? null : internal.abortError();
      if (error) this.destroy(error);
      return new Promise((resolve, reject) => finished(this, (e) => (e && e !== error ? reject(e) : resolve(null))));
    });
  }
  getters(Readable.prototype, {
    ...shared, readable: simple('isReadable'), readableFlowing: simple('flowing'), readableLength: simple('readableLength'),
    readableHighWaterMark: simple('readableMark'), readableEnded: simple('readableEnded'),
    readableObjectMode() { return isObjects(this, 'readableObjectMode'); }, readableEncoding() { return this.decodesTo ?? null; },
    readableAborted() { return (this.destroyed || this.errored !== null) && !this.readableEnded; },
    readableDidRead() { return this.readableFlowing !== null || this.readableEnded; },
  });

  // The chunks of a stream, for `for await`. Leaving the loop destroys the stream.
  const iterators = Object.getPrototypeOf(Object.getPrototypeOf(async function* () {}).prototype);
  function chunksOf(stream, options) {
    let wake = null;
    let outcome;
    let stop;
    let isOver = false;
    const rouse = () => {
      const f = wake;
      wake = null;
      if (f !== null) f();
    };
    const leave = () => {
      isOver = true;
      if (stop === undefined) return;
      const isWhole = stream.readableEnded || stream.destroyed;
      if ((outcome || options?.destroyOnReturn !== false) && (outcome === undefined || !stream.streamSettings?.noAutoDestroy)) {
        if (!stream.destroyed) internal.leaveStream(stream, isWhole ? null : internal.abortError());
      } else stop();
      stream.off('readable', rouse);
    };
    const over = (value) => ({ value, done: true });
    return {
      __proto__: iterators,
      async next() {
        if (isOver) return over(undefined);
        if (stop === undefined) {
          stream.on('readable', rouse);
          stop = finished(stream, { writable: false }, (error) => {
            outcome = error || null;
            rouse();
          });
        }
        for (;;) {
          const value = stream.destroyed ? null : stream.read();
          if (value !== null) return { value, done: false };
          if (outcome !== undefined) {
            leave();
            if (outcome) throw outcome;
            return over(undefined);
          }
          await new Promise((resolve) => { wake = resolve; });
        }
      },
      async return(value) {
        if (!isOver) leave();
        return over(value);
      },
      async throw(error) {
        outcome ??= error;
        if (!isOver) leave();
        throw error;
      },
    };
  }
  // What the end of a loop does to its stream; messages of HTTP have their own rule.
  internal.leaveStream = (stream, error) => stream[kNative]('leave', error);

  function Writable(options) {
    if (!(this instanceof Writable)) return new Writable(options);
    init(this, 'writable', options);
  }
  Object.setPrototypeOf(Writable, Stream);
  Writable.prototype = Object.create(Stream.prototype, { constructor: { value: Writable, writable: true, configurable: true } });
  Object.defineProperty(Writable, Symbol.hasInstance, {
    value(object) {
      if (Function.prototype[Symbol.hasInstance].call(this, object)) return true;
      return this === Writable && object?.[kNative] !== undefined && object instanceof Duplex;
    },
  });
  const prepared = (stream, chunk, encoding) => {
    if (chunk === null) throw coded(TypeError, 'ERR_STREAM_NULL_VALUES', 'May not write null values to stream');
    if (isObjects(stream, 'writableObjectMode')) return chunk;
    const given = encoding ?? stream.streamSettings?.encoding;
    if (typeof chunk === 'string' && stream.streamSettings?.decodes === false) return chunk;
    return bytesOf(chunk, given);
  };
  const writable = {
    write(chunk, encoding, callback) {
      if (typeof encoding === 'function') [encoding, callback] = [undefined, encoding];
      return this[kNative]('write', prepared(this, chunk, encoding), callback);
    },
    end(chunk, encoding, callback) {
      if (typeof chunk === 'function') [chunk, encoding, callback] = [undefined, undefined, chunk];
      else if (typeof encoding === 'function') [encoding, callback] = [undefined, encoding];
      if (chunk !== undefined && chunk !== null) this[kNative]('endWith', prepared(this, chunk, encoding), callback);
      else this[kNative]('end', callback);
      return this;
    },
    cork() { this[kNative]('cork'); },
    uncork() { this[kNative]('uncork'); },
    setDefaultEncoding(encoding) {
      const name = natives.encodingName(`${encoding}`);
      if (name === undefined) throw coded(TypeError, 'ERR_UNKNOWN_ENCODING', `Unknown encoding: ${encoding}`);
      this.streamSettings.encoding = name;
      return this;
    },
    _write(chunk, encoding, callback) {
      if (typeof this._writev === 'function') this._writev([{ chunk, encoding }], callback);
      else throw coded(Error, 'ERR_METHOD_NOT_IMPLEMENTED', 'The _write() method is not implemented');
    },
  };
  const writableGetters = {
    writable: simple('isWritable'), writableLength: simple('writableLength'), writableHighWaterMark: simple('writableMark'), writableEnded: simple('writableEnded'),
    writableFinished: simple('writableFinished'), writableCorked: simple('corked'), writableNeedDrain: simple('needDrain'),
    writableObjectMode() { return isObjects(this, 'writableObjectMode'); },
    writableAborted() { return (this.destroyed || this.errored !== null) && !this.writableFinished; },
  };
  give(Writable.prototype, writable);
  hide(Writable.prototype, 'pipe', function () { this.destroy(coded(Error, 'ERR_STREAM_CANNOT_PIPE', 'Cannot pipe, not readable')); });
  getters(Writable.prototype, { ...shared, ...writableGetters });

  function Duplex(options) {
    if (!(this instanceof Duplex)) return new Duplex(options);
    init(this, 'duplex', options);
  }
  Object.setPrototypeOf(Duplex, Readable);
  Duplex.prototype = Object.create(Readable.prototype, { constructor: { value: Duplex, writable: true, configurable: true } });
  give(Duplex.prototype, writable);
  getters(Duplex.prototype, writableGetters);
  Object.defineProperty(Duplex.prototype, 'allowHalfOpen', { get() { return !this.streamSettings?.notHalfOpen; }, set() {}, configurable: true });

  function Transform(options) {
    if (!(this instanceof Transform)) return new Transform(options);
    init(this, 'transform', options);
  }
  Object.setPrototypeOf(Transform, Duplex);
  Transform.prototype = Object.create(Duplex.prototype, { constructor: { value: Transform, writable: true, configurable: true } });
  hide(Transform.prototype, '_transform', () => { throw coded(Error, 'ERR_METHOD_NOT_IMPLEMENTED', 'The _transform() method is not implemented'); });

  function PassThrough(options) {
    if (!(this instanceof PassThrough)) return new PassThrough(options);
    Transform.call(this, options);
  }
  Object.setPrototypeOf(PassThrough, Transform);
  PassThrough.prototype = Object.create(Transform.prototype, { constructor: { value: PassThrough, writable: true, configurable: true } });
  hide(PassThrough.prototype, '_transform', (chunk, encoding, callback) => callback(null, chunk));

  function finished(stream, options, callback) {
    if (typeof options === 'function') [options, callback] = [{}, options];
    options ??= {};
    needFunction(callback, 'callback');
    if (stream?.[kNative] === undefined) throw invalidType('stream', ['ReadableStream', 'WritableStream', 'Stream'], stream);
    let done = false;
    const { signal } = options;
    internal.needSignal(signal, 'options.signal');
    const end = (error) => {
      if (done) return;
      done = true;
      if (signal) signal.removeEventListener('abort', aborted);
      apply(callback, stream, error === undefined ? [] : [error]);
    };
    const aborted = () => {
      end(internal.abortError(signal.reason));
      stop();
    };
    if (signal?.aborted) process.nextTick(aborted);
    else if (signal) signal.addEventListener('abort', aborted, { once: true });
    const stop = natives.finished(stream, { readable: options.readable, writable: options.writable, error: options.error }, end);
    return () => {
      done = true;
      stop();
    };
  }

  function addAbortSignal(signal, stream) {
    internal.needSignal(signal, 'signal');
    if (stream?.[kNative] === undefined) throw invalidType('stream', ['ReadableStream', 'WritableStream', 'Stream'], stream);
    const abort = () => stream.destroy(internal.abortError(signal.reason));
    if (signal.aborted) abort();
    else {
      signal.addEventListener('abort', abort, { once: true });
      finished(stream, () => signal.removeEventListener('abort', abort));
    }
    return stream;
  }

  Object.assign(Stream, { Stream, Readable, Writable, Duplex, Transform, PassThrough, finished, addAbortSignal });
  // An object of a class for a stream that Rust has made.
  internal.wrapStream = (Class, native, settings = {}, names = known) => {
    const object = Object.create(Class.prototype);
    EventEmitter.call(object);
    hide(object, 'streamSettings', { encoding: 'utf8', ...settings });
    bind(object, native(object), names);
    return object;
  };
  internal.streams = { kNative, chunksOf, finished };
  Object.assign(Stream, internal.builtin('stream_more')(Stream));
  const promises = {
    finished: (stream, options) => new Promise((resolve, reject) => {
      const stop = finished(stream, options ?? {}, (error) => {
        if (options?.cleanup) stop();
        if (error) reject(error);
        else resolve();
      });
    }),
    pipeline: (...list) => new Promise((resolve, reject) => {
      const last = list[list.length - 1];
      const options = last !== null && typeof last === 'object' && last[kNative] === undefined && last[Symbol.asyncIterator] === undefined && last[Symbol.iterator] === undefined ? list.pop() : {};
      internal.joinStreams(list, options, (error, value) => (error ? reject(error) : resolve(value)));
    }),
  };
  Object.defineProperty(Stream, 'promises', { value: promises, enumerable: true });
  const custom = Symbol.for('nodejs.util.promisify.custom');
  hide(finished, custom, promises.finished);
  hide(Stream.pipeline, custom, promises.pipeline);
  Stream.getDefaultHighWaterMark = (isObject) => (isObject ? 16 : 65536);
  Stream.isReadable = (stream) => stream?.readable ?? null;
  Stream.isErrored = (stream) => !!stream?.errored;
  Stream.isDisturbed = (stream) => !!(stream?.readableDidRead || stream?.readableAborted);
  return Stream;
})
