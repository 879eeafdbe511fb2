// Streams of iterables, chains with functions, and operators.
(function (natives, internal) {
  'use strict';
  const { coded, invalidType, needFunction, hide } = internal;
  return ({ Readable, Writable, Duplex, Transform, PassThrough }) => {
    const { kNative } = internal.streams;
    void Writable;
    const isIterable = (value) => value != null && (typeof value[Symbol.asyncIterator] === 'function' || typeof value[Symbol.iterator] === 'function');

    Readable.from = (iterable, options) => {
      if (typeof iterable === 'string' || iterable instanceof Uint8Array) {
        return new Readable({ objectMode: true, ...options, read() { this.push(iterable); this.push(null); } });
      }
      if (!isIterable(iterable)) throw invalidType('iterable', 'Iterable', iterable);
      const isAsync = typeof iterable[Symbol.asyncIterator] === 'function';
      const iterator = isAsync ? iterable[Symbol.asyncIterator]() : iterable[Symbol.iterator]();
      let isReading = false;
      const fill = async (stream) => {
        try {
          for (;;) {
            const { value, done } = isAsync ? await iterator.next() : iterator.next();
            if (done) {
              stream.push(null);
              return;
            }
            const item = value && typeof value.then === 'function' ? await value : value;
            if (item === null) {
              isReading = false;
              throw coded(TypeError, 'ERR_STREAM_NULL_VALUES', 'May not write null values to stream');
            }
            if (!stream.push(item)) {
              isReading = false;
              return;
            }
          }
        } catch (error) {
          stream.destroy(error);
        }
      };
      const leave = async (error) => {
        const failed = error !== undefined && error !== null;
        if (failed && typeof iterator.throw === 'function') {
          const { value, done } = await iterator.throw(error);
          await value;
          if (done) return;
        }
        if (typeof iterator.return === 'function') {
          const { value } = await iterator.return();
          await value;
        }
      };
      return new Readable({
        objectMode: true, highWaterMark: 1, ...options,
        read() {
          if (isReading) return;
          isReading = true;
          fill(this);
        },
        destroy(error, callback) {
          internal.then(leave(error), () => process.nextTick(callback, error), (other) => process.nextTick(callback, other ?? error));
        },
      });
    };

    // The function `next` of the chunks of an iterable, as `for await` calls it, and its end.
    internal.iterate = (iterable) => {
      if (typeof iterable[Symbol.asyncIterator] === 'function') {
        const iterator = iterable[Symbol.asyncIterator]();
        return [() => iterator.next(), () => iterator.return?.()];
      }
      const iterator = iterable[Symbol.iterator]();
      return [() => {
        const { value, done } = iterator.next();
        return internal.then(internal.resolved(value), (it) => ({ value: it, done }));
      }, () => iterator.return?.()];
    };
    // Joins streams, iterables and functions. Rust gets the streams, and for the others functions
    // that return iterables.
    internal.joinStreams = (given, options, callback) => {
      const list = given.length === 1 && Array.isArray(given[0]) ? given[0] : given;
      if (list.length < 2) throw coded(TypeError, 'ERR_MISSING_ARGS', 'The "streams" argument must be specified');
      const { signal } = options;
      internal.needSignal(signal, 'options.signal');
      const inner = new AbortController();
      let before;
      const stages = list.map((it, index) => {
        const source = before;
        if (typeof it === 'function') {
          const isLast = index === list.length - 1;
          const argument = source?.[kNative] === undefined ? source : Duplex.prototype.isPrototypeOf(source) || source instanceof Readable ? source : source;
          const result = index === 0 ? it({ signal: inner.signal }) : it(argument, { signal: inner.signal });
          if (!isLast || isIterable(result)) {
            if (!isIterable(result)) throw coded(TypeError, 'ERR_INVALID_RETURN_VALUE', `Expected AsyncIterable to be returned from the "${index === 0 ? 'source' : `transform[${index - 1}]`}" function but got ${result === undefined ? 'undefined' : `type ${typeof result}`}.`);
            before = result;
            return { items: result };
          }
          if (typeof result?.then !== 'function') throw coded(TypeError, 'ERR_INVALID_RETURN_VALUE', `Expected AsyncIterable or Promise to be returned from the "destination" function but got ${result === undefined ? 'undefined' : `type ${typeof result}`}.`);
          return { promise: result };
        }
        before = it;
        if (it?.[kNative] !== undefined) return { stream: it };
        if (isIterable(it)) return { items: it };
        throw invalidType('stream', ['Iterable', 'AsyncIterable', 'Stream'], it);
      });
      const aborted = () => end.abort(internal.abortError(signal.reason));
      const finish = (error, value) => {
        if (signal) signal.removeEventListener('abort', aborted);
        inner.abort();
        callback(error, value);
      };
      const end = natives.pipeline(stages, options.end !== false, finish);
      if (signal?.aborted) process.nextTick(aborted);
      else if (signal) signal.addEventListener('abort', aborted, { once: true });
      const last = list[list.length - 1];
      return typeof last === 'function' ? before : last;
    };
    const pipeline = (...list) => {
      const callback = list.pop();
      needFunction(callback, 'streams[stream.length - 1]');
      return internal.joinStreams(list, {}, callback);
    };
    const wrapped = (make, settings) => internal.wrapStream(Duplex, make, settings);
    const both = { readableObjectMode: true, writableObjectMode: true };
    const compose = (...list) => {
      const streams = list.map((it) => (it?.[kNative] === undefined ? Duplex.from(it) : it));
      return streams.length === 1 ? streams[0] : wrapped((object) => natives.streamCompose(object, streams),
        { readableObjectMode: streams[streams.length - 1].readableObjectMode, writableObjectMode: streams[0].writableObjectMode });
    };
    Duplex.from = (value) => {
      if (value instanceof Duplex) return value;
      const { readable, writable } = value ?? {};
      if (readable?.[kNative] !== undefined && writable?.[kNative] !== undefined) {
        return wrapped((object) => natives.streamHalves(object, readable, writable),
          { readableObjectMode: readable.readableObjectMode, writableObjectMode: writable.writableObjectMode });
      }
      if (typeof value === 'function') throw internal.notImplemented('Duplex.from() of a function');
      return Readable.from(value);
    };
    const duplexPair = () => {
      const [one, two] = natives.streamPair();
      return [wrapped(one), wrapped(two)];
    };
    void both; void Transform; void PassThrough;

    // Operators: each is a stream of, or a loop over, the chunks.
    const checked = (options, f) => {
      if (f !== undefined) needFunction(f, 'fn');
      if (options != null && typeof options !== 'object') throw invalidType('options', 'Object', options);
      internal.needSignal(options?.signal, 'options.signal');
      return options?.signal;
    };
    const number = (value) => {
      const n = Number(value);
      if (Number.isNaN(n)) throw internal.outOfRange('number', 'a number', n);
      if (n < 0) throw internal.outOfRange('number', '>= 0', n);
      return n;
    };
    const streamed = (generate) => Readable.from(generate(), { objectMode: true });
    async function* each(stream, signal) {
      for await (const chunk of stream) {
        if (signal?.aborted) throw internal.abortError(signal.reason);
        yield chunk;
      }
    }
    const operators = {
      map(f, options) {
        const signal = checked(options, f);
        const stream = this;
        return streamed(async function* () { for await (const it of each(stream, signal)) yield await f(it, { signal }); });
      },
      filter(f, options) {
        const signal = checked(options, f);
        const stream = this;
        return streamed(async function* () { for await (const it of each(stream, signal)) if (await f(it, { signal })) yield it; });
      },
      flatMap(f, options) {
        const signal = checked(options, f);
        const stream = this;
        return streamed(async function* () { for await (const it of each(stream, signal)) yield* await f(it, { signal }); });
      },
      take(count, options) {
        const signal = checked(options);
        const stream = this;
        let left = number(count);
        return streamed(async function* () {
          for await (const it of each(stream, signal)) {
            if (left-- > 0) yield it;
            if (left <= 0) return;
          }
        });
      },
      drop(count, options) {
        const signal = checked(options);
        const stream = this;
        let left = number(count);
        return streamed(async function* () { for await (const it of each(stream, signal)) if (left-- <= 0) yield it; });
      },
      async toArray(options) {
        const all = [];
        for await (const it of each(this, checked(options))) all.push(it);
        return all;
      },
      async forEach(f, options) {
        const signal = checked(options, f);
        for await (const it of each(this, signal)) await f(it, { signal });
      },
      async reduce(f, ...rest) {
        let [sum, options] = rest;
        let isEmpty = rest.length === 0;
        const signal = checked(options, f);
        for await (const it of each(this, signal)) {
          sum = isEmpty ? it : await f(sum, it, { signal });
          isEmpty = false;
        }
        if (isEmpty) throw coded(TypeError, 'ERR_MISSING_ARGS', 'Reduce of an empty stream requires an initial value');
        return sum;
      },
      async find(f, options) {
        const signal = checked(options, f);
        for await (const it of each(this, signal)) if (await f(it, { signal })) return it;
        return undefined;
      },
      async some(f, options) {
        const signal = checked(options, f);
        for await (const it of each(this, signal)) if (await f(it, { signal })) return true;
        return false;
      },
      async every(f, options) { return !(await operators.some.call(this, async (...args) => !(await f(...args)), options)); },
      compose(stream) { return compose(this, stream); },
    };
    for (const name of Object.keys(operators)) hide(Readable.prototype, name, operators[name]);
    return { pipeline, compose, duplexPair };
  };
})
