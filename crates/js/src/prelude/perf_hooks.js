// `perf_hooks`: the shape of the timeline, of observers and of histograms.
(function (natives, internal) {
  'use strict';
  const { apply, coded, invalidType, needFunction, notImplemented } = internal;
  internal.builtin('stream');
  const kKey = Symbol('entry');
  const illegal = () => coded(TypeError, 'ERR_ILLEGAL_CONSTRUCTOR', 'Illegal constructor');

  class PerformanceEntry {
    #fields;
    constructor(key, ...fields) {
      if (key !== kKey) throw illegal();
      this.#fields = fields;
    }
    get name() { return this.#fields[0]; }
    get entryType() { return this.#fields[1]; }
    get startTime() { return this.#fields[2]; }
    get duration() { return this.#fields[3]; }
    get detail() { return this.#fields[4]; }
    toJSON() { return { name: this.name, entryType: this.entryType, startTime: this.startTime, duration: this.duration, detail: this.detail }; }
  }
  class PerformanceMark extends PerformanceEntry {}
  class PerformanceMeasure extends PerformanceEntry {}
  internal.performanceEntry = (name, type, ...rest) => {
    const Class = type === 'mark' ? PerformanceMark : type === 'measure' ? PerformanceMeasure : PerformanceEntry;
    return new Class(kKey, name, type, ...rest);
  };
  const byName = (entries, name, type) => entries.filter((it) => it.name === `${name}` && (type === undefined || it.entryType === type));
  const byType = (entries, type) => entries.filter((it) => it.entryType === `${type}`);

  class PerformanceObserverEntryList {
    #entries;
    constructor(key, entries) {
      if (key !== kKey) throw illegal();
      this.#entries = entries;
    }
    getEntries() { return this.#entries.slice(); }
    getEntriesByName(name, type) { return byName(this.#entries, name, type); }
    getEntriesByType(type) { return byType(this.#entries, type); }
  }
  // An observer that observes is kept.
  const observing = new internal.SafeSet();
  const supported = ['function', 'mark', 'measure'];
  class PerformanceObserver {
    #native;
    #callback;
    #types = [];
    #kind;
    constructor(callback) {
      needFunction(callback, 'callback');
      this.#callback = callback;
      this.#native = natives.performanceObserver(this);
    }
    static get supportedEntryTypes() { return supported.slice(); }
    static call(observer, entries) { apply(observer.#callback, observer, [new PerformanceObserverEntryList(kKey, entries), observer]); }
    observe(options = {}) {
      internal.needObject(options, 'options');
      const { entryTypes, type, buffered } = options;
      if (entryTypes === undefined && type === undefined) throw coded(TypeError, 'ERR_MISSING_ARGS', 'The "options.entryTypes" or "options.type" argument must be specified');
      if (entryTypes !== undefined && type !== undefined) throw internal.invalidValue('options.entryTypes', entryTypes, 'options.entryTypes can not set with options.type together');
      const kind = type === undefined ? 'list' : 'one';
      if ((this.#kind ??= kind) !== kind) throw coded(Error, 'ERR_INVALID_STATE', 'Invalid state: PerformanceObserver can not change its kind of observation');
      if (type === undefined) {
        if (!Array.isArray(entryTypes)) throw invalidType('options.entryTypes', 'string[]', entryTypes);
        this.#types = entryTypes.filter((it) => supported.includes(it));
        if (this.#types.length === 0) return;
      } else {
        if (!supported.includes(type)) return;
        this.#types = [...this.#types.filter((it) => it !== type), type];
      }
      observing.add(this);
      this.#native('observe', ...this.#types);
      if (type !== undefined && buffered) this.#native('buffered', type);
    }
    disconnect() {
      observing.delete(this);
      this.#types = [];
      this.#kind = undefined;
      this.#native('disconnect');
    }
    takeRecords() { return this.#native('take'); }
  }
  const observed = PerformanceObserver.call;
  delete PerformanceObserver.call;
  internal.performanceObserved = (weak, entries) => {
    const observer = weak.deref();
    if (observer !== undefined) observed(observer, entries);
  };

  const kHistogram = Symbol('histogram');
  class Histogram {
    constructor(key, native) {
      if (key !== kKey) throw illegal();
      internal.hide(this, kHistogram, native);
    }
    get percentiles() { return new Map(this[kHistogram]('percentiles')); }
    percentile(percent) {
      if (typeof percent !== 'number') throw invalidType('percentile', 'number', percent);
      if (!(percent > 0 && percent <= 100)) throw internal.outOfRange('percentile', '> 0 && <= 100', percent);
      return this[kHistogram]('percentile', percent);
    }
    reset() { this[kHistogram]('reset'); }
  }
  for (const name of ['count', 'exceeds', 'min', 'max', 'mean', 'stddev']) {
    Object.defineProperty(Histogram.prototype, name, { get() { return this[kHistogram](name); }, configurable: true });
  }
  class RecordableHistogram extends Histogram {
    record(value) {
      if (typeof value !== 'number' && typeof value !== 'bigint') throw invalidType('val', ['integer', 'bigint'], value);
      const number = Number(value);
      if (!Number.isInteger(number) || number < 1) throw internal.outOfRange('val', number < 1 ? '>= 1 && <= 9007199254740991' : 'an integer', value);
      this[kHistogram]('record', number);
    }
    recordDelta() { this[kHistogram]('recordDelta'); }
    add(other) {
      if (!(other instanceof RecordableHistogram)) throw invalidType('other', 'RecordableHistogram', other);
      this[kHistogram]('add', other[kHistogram]);
    }
  }
  class IntervalHistogram extends Histogram {
    enable() { return this[kHistogram]('enable'); }
    disable() { return this[kHistogram]('disable'); }
  }
  const need = (name, value) => {
    if (typeof value !== 'number' && typeof value !== 'bigint') throw invalidType(name, 'number', value);
    return Number(value);
  };
  const createHistogram = (options = {}) => {
    internal.needObject(options, 'options');
    const { lowest = 1, highest = Number.MAX_SAFE_INTEGER, figures = 3 } = options;
    return new RecordableHistogram(kKey, natives.histogram(need('options.lowest', lowest), need('options.highest', highest), need('options.figures', figures)));
  };
  const monitorEventLoopDelay = (options = {}) => {
    internal.needObject(options, 'options');
    const { resolution = 10 } = options;
    if (typeof resolution !== 'number') throw invalidType('options.resolution', 'number', resolution);
    if (!Number.isInteger(resolution) || resolution < 1) throw internal.outOfRange('options.resolution', '>= 1 && <= 9007199254740991', resolution);
    return new IntervalHistogram(kKey, natives.loopDelay(resolution));
  };

  class Performance {
    constructor(key) { if (key !== kKey) throw illegal(); }
    now() { return natives.performanceNow(); }
    mark(name, options = {}) {
      internal.needObject(options ?? {}, 'options');
      const { startTime, detail } = options ?? {};
      if (startTime !== undefined && typeof startTime !== 'number') throw invalidType('startTime', 'number', startTime);
      return natives.performanceMark(`${name}`, startTime, detail === undefined ? undefined : structuredClone(detail));
    }
    measure(name, options, end) {
      if (typeof name !== 'string') throw invalidType('name', 'string', name);
      if (options === null || typeof options !== 'object') return natives.performanceMeasure(name, options, end);
      const { start, end: last, duration, detail } = options;
      if (start === undefined && last === undefined && Object.keys(options).length > 0) {
        throw coded(TypeError, 'ERR_PERFORMANCE_MEASURE_INVALID_OPTIONS', 'One of options.start or options.end is required');
      }
      if (duration !== undefined && typeof duration !== 'number') throw invalidType('options.duration', 'number', duration);
      return natives.performanceMeasure(name, start, last, duration, detail === undefined ? undefined : structuredClone(detail));
    }
    getEntries() { return natives.performanceEntries(); }
    getEntriesByName(name, type) { return byName(natives.performanceEntries(), name, type); }
    getEntriesByType(type) { return byType(natives.performanceEntries(), type); }
    clearMarks(name) { natives.performanceClear(true, name === undefined ? undefined : `${name}`); }
    clearMeasures(name) { natives.performanceClear(false, name === undefined ? undefined : `${name}`); }
    get timeOrigin() { return natives.timeOrigin(); }
    get nodeTiming() { return { get uvMetricsInfo() { return natives.loopMetrics(); } }; }
    toJSON() { return { timeOrigin: this.timeOrigin }; }
  }
  const AsyncFunction = Object.getPrototypeOf(async () => {});
  const timerify = (f, options = {}) => {
    needFunction(f, 'fn');
    internal.needObject(options, 'options');
    const { histogram } = options;
    if (histogram !== undefined && !(histogram instanceof RecordableHistogram)) throw invalidType('options.histogram', 'RecordableHistogram', histogram);
    if (Object.getPrototypeOf(f) === AsyncFunction) throw notImplemented('performance.timerify() of an async function');
    function timerified(...args) {
      const call = new.target ? () => Reflect.construct(f, args, f) : () => apply(f, this, args);
      return natives.timerify(f.name, call, histogram?.[kHistogram]);
    }
    Object.defineProperties(timerified, { length: { value: f.length, configurable: true }, name: { value: `timerified ${f.name}`, configurable: true } });
    return timerified;
  };
  const eventLoopUtilization = (first, second) => natives.loopUtilization(first?.idle, first?.active, second?.idle, second?.active);
  Object.assign(Performance.prototype, { timerify, eventLoopUtilization });
  const performance = new Performance(kKey);
  return {
    performance, Performance, PerformanceEntry, PerformanceMark, PerformanceMeasure, PerformanceObserver, PerformanceObserverEntryList, createHistogram, monitorEventLoopDelay,
    eventLoopUtilization, timerify,
  };
})
