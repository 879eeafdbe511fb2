// `process`: an emitter, whose events come from the loop.
(function (natives, internal) {
  'use strict';
  const { coded, invalidType, needFunction } = internal;
  const EventEmitter = internal.builtin('events');
  function Process() {}
  Process.prototype = Object.create(EventEmitter.prototype, { constructor: { value: Process, writable: true, configurable: true } });
  Object.defineProperty(Process.prototype, Symbol.toStringTag, { value: 'process', configurable: true });
  const process = new Process();
  EventEmitter.call(process);

  // The loop knows a listener exactly while JavaScript has one.
  const fromLoop = new internal.SafeSet(['exit', 'beforeExit', 'uncaughtException', 'uncaughtExceptionMonitor', 'unhandledRejection', 'rejectionHandled', 'warning', 'message', 'disconnect']);
  const isSignal = (name) => typeof name === 'string' && /^SIG[A-Z]/.test(name) && natives.signalNumber(name) !== undefined;
  const isFromLoop = (name) => fromLoop.has(name) || isSignal(name);
  const heard = new internal.SafeSet();
  const sync = (name) => {
    const wanted = internal.apply(EventEmitter.prototype.listenerCount, process, [name]) > 0;
    if (wanted === heard.has(name)) return;
    if (wanted) {
      natives.processListen(name);
      heard.add(name);
    } else {
      heard.delete(name);
      natives.processUnlisten(name);
    }
  };
  for (const method of ['addListener', 'prependListener', 'removeListener']) {
    const original = EventEmitter.prototype[method];
    process[method] = function (name, listener) {
      internal.apply(original, this, [name, listener]);
      if (isFromLoop(name)) sync(name);
      return this;
    };
  }
  process.on = process.addListener;
  process.off = process.removeListener;
  process.removeAllListeners = function (...names) {
    internal.apply(EventEmitter.prototype.removeAllListeners, this, names);
    for (const name of [...heard]) sync(name);
    return this;
  };
  for (const name of ['on', 'off', 'addListener', 'prependListener', 'removeListener', 'removeAllListeners']) internal.hide(process, name, process[name]);

  // Called by the loop.
  internal.emitProcess = (...args) => internal.apply(process.emit, process, args);
  let capture = null;
  internal.emitUncaught = (value, origin) => {
    let error = value;
    if (origin === 'unhandledRejection' && !(error instanceof Error)) error = internal.unhandledRejection(value);
    if (capture !== null) return capture(error);
    return process.emit('uncaughtException', error, origin);
  };
  internal.emitMonitor = (value, origin) => {
    let error = value;
    if (origin === 'unhandledRejection' && !(error instanceof Error)) error = internal.unhandledRejection(value);
    process.emit('uncaughtExceptionMonitor', error, origin);
  };
  // The number of a signal that is a name or a number.
  internal.signalOf = (signal = 'SIGTERM') => {
    const number = typeof signal === 'number' ? signal : natives.signalNumber(`${signal}`.toUpperCase());
    if (!Number.isInteger(number)) throw coded(TypeError, 'ERR_UNKNOWN_SIGNAL', `Unknown signal: ${signal}`);
    return number;
  };
  process.kill = (pid, signal) => {
    if (pid !== (pid | 0)) throw invalidType('pid', 'number', pid);
    natives.kill(pid, internal.signalOf(signal));
    return true;
  };
  // The channel to the parent, if it has started this process by `fork`.
  if (natives.connected()) {
    process.send = (message, ...rest) => {
      if (message === undefined) throw coded(TypeError, 'ERR_MISSING_ARGS', 'The "message" argument must be specified');
      return natives.send(JSON.stringify(message), rest.find((it) => typeof it === 'function'));
    };
    process.disconnect = () => natives.disconnect();
    Object.defineProperty(process, 'connected', { get: () => natives.connected(), enumerable: true, configurable: true });
  }
  process.setUncaughtExceptionCaptureCallback = (f) => {
    if (f !== null) needFunction(f, 'fn');
    capture = f;
    if (f !== null) process.on('uncaughtException', internal.noop ??= () => {});
    else process.removeListener('uncaughtException', internal.noop);
  };
  process.hasUncaughtExceptionCaptureCallback = () => capture !== null;

  process.nextTick = natives.nextTick;
  let exitCode;
  const codeOf = (code, name) => {
    if (code === undefined || code === null) return undefined;
    const number = typeof code === 'string' && code !== '' ? Number(code) : code;
    if (typeof number !== 'number') throw invalidType(name, 'integer', code);
    if (!Number.isInteger(number)) throw internal.outOfRange(name, 'an integer', number);
    return number;
  };
  Object.defineProperty(process, 'exitCode', {
    get: () => exitCode,
    set: (code) => {
      const number = codeOf(code, 'code');
      exitCode = code;
      natives.setExitCode(number ?? 0);
    },
    enumerable: true,
  });
  process.exit = function exit(code) {
    const number = codeOf(code, 'code');
    if (code !== undefined) exitCode = code;
    internal.leaveMain?.();
    natives.exit((number ?? codeOf(exitCode, 'code') ?? 0) | 0);
  };
  process.reallyExit = (code) => natives.reallyExit(code | 0);
  process.abort = () => natives.abort();

  process.emitWarning = (warning, type, code) => {
    let detail;
    if (type !== null && typeof type === 'object' && !Array.isArray(type)) {
      code = type.code;
      detail = typeof type.detail === 'string' ? type.detail : undefined;
      type = type.type || 'Warning';
    } else if (typeof type === 'function') {
      type = 'Warning';
    }
    if (type !== undefined && typeof type !== 'string') throw invalidType('type', 'string', type);
    if (typeof code === 'function') code = undefined;
    if (typeof warning === 'string') {
      const made = new Error(warning);
      made.name = String(type || 'Warning');
      if (code !== undefined) made.code = code;
      if (detail !== undefined) made.detail = detail;
      warning = made;
    } else if (!(warning instanceof Error)) {
      throw invalidType('warning', ['string', 'Error'], warning);
    }
    process.nextTick(() => {
      if (process.listenerCount('warning') > 0) process.emit('warning', warning);
      else natives.write(2, `(phaseloop) ${warning.name}: ${warning.message}\n`);
    });
  };

  const hrtime = (before) => {
    const now = natives.hrtime();
    const seconds = now / 1000000000n;
    const parts = [Number(seconds), Number(now - seconds * 1000000000n)];
    if (before === undefined) return parts;
    const nanos = parts[1] - before[1];
    return nanos < 0 ? [parts[0] - before[0] - 1, nanos + 1e9] : [parts[0] - before[0], nanos];
  };
  hrtime.bigint = () => natives.hrtime();
  process.hrtime = hrtime;
  process.uptime = () => natives.uptime();
  process.cwd = () => natives.cwd();
  process.chdir = (path) => natives.chdir(String(path));
  if (natives.memory) {
    process.memoryUsage = () => {
      const [heapTotal, heapUsed] = natives.heap();
      return { rss: natives.memory(), heapTotal, heapUsed };
    };
    process.memoryUsage.rss = () => natives.memory();
  }
  if (natives.usage) {
    const numberOf = (value, name) => {
      if (typeof value !== 'number') throw invalidType(`prevValue.${name}`, 'number', value);
      if (!(value >= 0 && value <= Number.MAX_SAFE_INTEGER)) throw coded(RangeError, 'ERR_INVALID_ARG_VALUE', `The property 'prevValue.${name}' is invalid. Received ${value}`);
      return value;
    };
    process.cpuUsage = (before) => {
      if (before && typeof before !== 'object') throw invalidType('prevValue', 'object', before);
      const [user, system] = natives.usage();
      return before ? { user: user - numberOf(before.user, 'user'), system: system - numberOf(before.system, 'system') } : { user, system };
    };
    process.resourceUsage = () => {
      const [userCPUTime, systemCPUTime, maxRSS, minorPageFault, majorPageFault, fsRead, fsWrite, voluntaryContextSwitches, involuntaryContextSwitches] = natives.usage();
      return {
        userCPUTime, systemCPUTime, maxRSS, sharedMemorySize: 0, unsharedDataSize: 0, unsharedStackSize: 0, minorPageFault, majorPageFault, swappedOut: 0,
        fsRead, fsWrite, ipcSent: 0, ipcReceived: 0, signalsCount: 0, voluntaryContextSwitches, involuntaryContextSwitches,
      };
    };
    process.availableMemory = () => natives.systemMemory()[2];
    process.constrainedMemory = () => natives.systemMemory()[3];
  }
  // Settings of a build that is Node's own.
  process.config = Object.freeze({ target_defaults: Object.freeze({}), variables: Object.freeze({}) });
  process.features = Object.freeze({ inspector: false, debug: false, uv: false, ipv6: true, tls_alpn: false, tls_sni: false, tls_ocsp: false, tls: false, require_module: true, typescript: false });
  // The version of Node whose behaviour is followed.
  process.version = 'v26.10.0';
  process.versions = { node: '26.10.0', phaseloop: natives.version };
  process.release = { name: 'node' };
  process.execArgv = [];
  process.pid = natives.pid();
  if (natives.user) {
    process.getuid = () => natives.user()[0];
    process.getgid = () => natives.user()[1];
  }
  process.platform = natives.platform;
  process.arch = natives.arch;
  process.argv = natives.argv();
  process.execPath = natives.execPath();
  process.argv0 = process.argv[0];
  // The name of the process itself does not change.
  let title = process.argv0 ?? '';
  Object.defineProperty(process, 'title', { get: () => title, set: (value) => { title = `${value}`; }, enumerable: true, configurable: true });
  process.env = natives.env();
  process.getActiveResourcesInfo = () => natives.activeResources();

  const output = (fd) => {
    const stream = Object.create(EventEmitter.prototype);
    EventEmitter.call(stream);
    stream.fd = fd;
    stream.writable = true;
    if (natives.isTerminal(fd)) stream.isTTY = true;
    stream.write = (chunk, encoding, callback) => {
      natives.write(fd, internal.dataOf(chunk, 'chunk'));
      const f = typeof encoding === 'function' ? encoding : callback;
      if (f) process.nextTick(f);
      return true;
    };
    return stream;
  };
  const lazy = (name, make) => {
    let value;
    Object.defineProperty(process, name, { get: () => (value ??= make()), set: (other) => { value = other; }, enumerable: true, configurable: true });
  };
  lazy('stdout', () => output(1));
  lazy('stderr', () => output(2));
  lazy('stdin', () => {
    const stream = internal.wrapStream(internal.builtin('stream').Readable, (object) => natives.stdin(object));
    stream.fd = 0;
    if (natives.isTerminal(0)) stream.isTTY = true;
    return stream;
  });
  internal.hide(globalThis, 'process', process);
  return process;
})
