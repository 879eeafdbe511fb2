// `child_process`: processes are bound emitters, and their pipes are bound streams.
(function (natives, internal) {
  'use strict';
  const { coded, invalidType, needFunction, hide, notImplemented } = internal;
  const EventEmitter = internal.builtin('events');
  const { Readable, Writable } = internal.builtin('stream');
  const { Buffer } = internal.builtin('buffer');
  const { kNative } = internal;
  const names = new Set(['spawn', 'exit', 'close', 'error', 'message', 'disconnect', EventEmitter.errorMonitor]);

  function ChildProcess() {
    if (!(this instanceof ChildProcess)) return new ChildProcess();
    EventEmitter.call(this);
  }
  Object.setPrototypeOf(ChildProcess, EventEmitter);
  ChildProcess.prototype = Object.create(EventEmitter.prototype, { constructor: { value: ChildProcess, writable: true, configurable: true } });
  internal.giveListeners(ChildProcess.prototype);
  const methods = {
    kill(signal) { return this[kNative]('kill', internal.signalOf(signal)); },
    ref() { this[kNative]('ref', true); },
    unref() { this[kNative]('ref', false); },
    send(message, ...rest) {
      if (message === undefined) throw coded(TypeError, 'ERR_MISSING_ARGS', 'The "message" argument must be specified');
      const callback = rest.find((it) => typeof it === 'function');
      if (rest[0] !== null && typeof rest[0] === 'object' && rest[0][kNative] !== undefined) throw notImplemented('A handle that is sent');
      return this[kNative]('send', JSON.stringify(message), callback);
    },
    disconnect() { this[kNative]('disconnect'); },
  };
  for (const name of Object.keys(methods)) hide(ChildProcess.prototype, name, methods[name]);
  if (Symbol.dispose) hide(ChildProcess.prototype, Symbol.dispose, function () { if (!this.killed) this.kill(); });
  const getters = {
    exitCode() { return this[kNative]('exit')[0]; }, signalCode() { return this[kNative]('exit')[1]; },
    killed() { return this[kNative]('killed'); }, connected() { return this[kNative]('connected') ?? false; },
  };
  for (const name of Object.keys(getters)) Object.defineProperty(ChildProcess.prototype, name, { get: getters[name], set() {}, enumerable: true, configurable: true });
  // A process is kept until it is closed.
  const active = new Set();
  const bound = (start, spawnfile, spawnargs, count) => {
    const child = new ChildProcess();
    const native = start();
    internal.bindStream(child, native, names);
    active.add(child);
    native('onceClosed', () => natives.nextTick(() => active.delete(child)));
    const stream = (Class, name) => (native('has', name) ? internal.wrapStream(Class, (object) => native(name, object)) : null);
    Object.assign(child, { spawnfile, spawnargs, pid: native('pid'), stdin: stream(Writable, 'stdin'), stdout: stream(Readable, 'stdout'), stderr: stream(Readable, 'stderr') });
    if (count > 3) internal.builtin('net');
    child.stdio = [child.stdin, child.stdout, child.stderr];
    for (let i = 3; i < count; i++) child.stdio[i] = native('stdio', i) ?? null;
    return child;
  };

  // The program, its arguments and the options; each function checks what is its own.
  const given = (file, args, options, name = 'file') => {
    if (typeof file !== 'string') throw invalidType(name, 'string', file);
    if (file === '') throw internal.invalidValue(name, file, 'cannot be empty');
    if (!Array.isArray(args)) {
      if (args !== undefined && args !== null) {
        if (typeof args !== 'object') throw invalidType('args', 'object', args);
        options = args;
      }
      args = [];
    }
    if (options === undefined || options === null) options = {};
    if (typeof options !== 'object') throw invalidType('options', 'object', options);
    for (const [key, type] of [['argv0', 'string'], ['detached', 'boolean'], ['timeout', 'number'], ['uid', 'number'], ['gid', 'number']]) {
      if (options[key] !== undefined && options[key] !== null && typeof options[key] !== type) throw invalidType(`options.${key}`, type, options[key]);
    }
    if (options.shell !== undefined && options.shell !== null && !['boolean', 'string'].includes(typeof options.shell)) throw invalidType('options.shell', ['boolean', 'string'], options.shell);
    if (options.cwd !== undefined && options.cwd !== null && typeof options.cwd !== 'string') throw invalidType('options.cwd', ['string', 'Buffer', 'URL'], options.cwd);
    internal.needSignal(options.signal, 'options.signal');
    const env = [];
    const pairs = options.env ?? process.env;
    for (const key in pairs) if (pairs[key] !== undefined) env.push(key, `${pairs[key]}`);
    const killSignal = options.killSignal === undefined ? undefined : internal.signalOf(options.killSignal);
    return [file, args.map((it) => `${it}`), { ...options, env, killSignal }];
  };
  // A process whose signal is followed until it is closed.
  const followed = ({ signal }, start) => {
    const [controller, stop] = internal.follow(signal);
    const child = start(controller);
    child[kNative]('onceClosed', stop);
    return child;
  };
  const stdioOf = (stdio) => {
    if (typeof stdio === 'string') {
      if (!['pipe', 'overlapped', 'ignore', 'inherit'].includes(stdio)) throw internal.invalidValue('stdio', stdio);
      return [stdio, stdio, stdio];
    }
    if (stdio !== undefined && !Array.isArray(stdio)) throw internal.invalidValue('stdio', stdio);
    const list = (stdio ?? []).map((it, place) => {
      if (it === undefined || it === null) return place < 3 ? 'pipe' : 'ignore';
      if (it === 'overlapped') return 'pipe';
      if (typeof it === 'string' && ['pipe', 'ignore', 'inherit', 'ipc'].includes(it)) return it;
      const fd = typeof it === 'number' ? it : it.fd;
      if (typeof fd !== 'number') throw internal.invalidValue('stdio', it);
      return fd > 2 ? internal.builtin('fs') && internal.fsLender(fd) : fd;
    });
    while (list.length < 3) list.push('pipe');
    return list;
  };
  const spawn = (file, args, options) => {
    const [program, list, all] = given(file, args, options);
    const stdio = stdioOf(all.stdio);
    return followed(all, (controller) => bound(() => natives.spawn(program, list, { ...all, stdio, controller }), program, [all.argv0 ?? program, ...list], stdio.length));
  };
  const collected = (file, args, { encoding = 'utf8', ...options }, callback) => {
    if (callback !== undefined && callback !== null) needFunction(callback, 'callback');
    if (encoding === 'buffer' || encoding === null || !natives.isEncoding(encoding)) throw notImplemented(`The encoding "${encoding}" of child_process.exec()`);
    const shell = typeof options.shell === 'string' ? options.shell : undefined;
    if (args !== undefined && options.shell === true) throw notImplemented('The option "shell: true" of child_process.execFile()');
    return followed(options, (controller) => bound(() => natives.exec(file, args, { ...options, shell, encoding, controller }, callback ?? (() => {})), file, [file, ...(args ?? [])], 3));
  };
  const exec = (command, options, callback) => {
    if (typeof options === 'function') [options, callback] = [undefined, options];
    const [text, , all] = given(command, [], options, 'command');
    return collected(text, undefined, all, callback);
  };
  const execFile = (file, ...rest) => {
    const callback = typeof rest[rest.length - 1] === 'function' ? rest.pop() : undefined;
    const [args, options] = rest;
    const [program, list, all] = given(file, args, options);
    return collected(program, list, all, callback);
  };
  const custom = Symbol.for('nodejs.util.promisify.custom');
  for (const f of [exec, execFile]) {
    hide(f, custom, (...args) => {
      let child;
      const promise = new Promise((resolve, reject) => {
        child = f(...args, (error, stdout, stderr) => (error ? reject(Object.assign(error, { stdout, stderr })) : resolve({ stdout, stderr })));
      });
      promise.child = child;
      return promise;
    });
  }
  const fork = (path, args, options) => {
    if (typeof path !== 'string') throw invalidType('modulePath', 'string', path);
    const [, list, all] = given(path, args, options, 'modulePath');
    const { execPath = process.execPath, execArgv = process.execArgv, silent = false } = all;
    if (all.serialization !== undefined && all.serialization !== 'json') throw notImplemented(`The serialization "${all.serialization}" of child_process.fork()`);
    const way = silent ? 'pipe' : 'inherit';
    const stdio = all.stdio === undefined ? [way, way, way, 'ipc'] : typeof all.stdio === 'string' ? [...stdioOf(all.stdio), 'ipc'] : all.stdio;
    if (!stdio.includes('ipc')) throw coded(Error, 'ERR_CHILD_PROCESS_IPC_REQUIRED', "Forked processes must have an IPC channel, missing value 'ipc' in options.stdio");
    return spawn(execPath, [...execArgv, path, ...list], { ...options ?? {}, ...(Array.isArray(args) ? {} : args), shell: false, stdio });
  };

  // What blocks.
  const spawnSync = (file, args, options) => {
    const [program, list, all] = given(file, args, options);
    for (const name of ['timeout', 'signal', 'uid', 'gid', 'argv0', 'maxBuffer']) {
      if (all[name]) throw notImplemented(`The option "${name}" of child_process.spawnSync()`);
    }
    const stdio = stdioOf(all.stdio);
    if (stdio.some((it, place) => !['pipe', 'inherit', 'ignore'].includes(it) && it !== place)) throw notImplemented('A descriptor of child_process.spawnSync()');
    const shell = all.shell === true ? '/bin/sh' : all.shell;
    if (shell && natives.platform === 'win32') throw notImplemented('The option "shell" of child_process.spawnSync()');
    const line = shell ? [shell, ['-c', [program, ...list].join(' ')]] : [program, list];
    const input = all.input === undefined ? undefined : Buffer.from(internal.dataOf(all.input, 'options.input'));
    const ways = stdio.map((it) => (typeof it === 'number' ? 'inherit' : it));
    const { error, pid = 0, status = null, signal = null, stdout, stderr } = natives.spawnSync(line[0], line[1], { ...all, input, stdio: ways });
    const text = (bytes, place) => {
      if (bytes === undefined || ways[place] !== 'pipe') return null;
      return !all.encoding || all.encoding === 'buffer' ? internal.asBuffer(bytes) : natives.decode(bytes, all.encoding);
    };
    const output = error ? null : [null, text(stdout, 1), text(stderr, 2)];
    const result = { status, signal, output, pid, stdout: output?.[1] ?? null, stderr: output?.[2] ?? null };
    if (error) {
      const syscall = `spawnSync ${line[0]}`;
      hide(error, 'message', `${syscall} ${error.code}`);
      result.error = Object.assign(error, { syscall, path: line[0], spawnargs: line[1] });
    }
    return result;
  };
  const checked = (result, words, pipes) => {
    if (result.error) throw result.error;
    if (pipes && result.stderr?.length) process.stderr.write(result.stderr);
    if (result.status === 0) return result.stdout;
    const message = `Command failed: ${words.join(' ')}`;
    throw Object.assign(new Error(result.stderr?.length ? `${message}\n${result.stderr}` : message), result);
  };
  const execFileSync = (file, args, options) => {
    const all = Array.isArray(args) ? options ?? {} : args ?? {};
    return checked(spawnSync(file, args, options), [file, ...(Array.isArray(args) ? args : [])], all.stdio === undefined);
  };
  const execSync = (command, options = {}) => checked(spawnSync(command, [], { ...options, shell: options.shell ?? true }), [command], options.stdio === undefined);
  return { ChildProcess, spawn, exec, execFile, fork, spawnSync, execSync, execFileSync };
})
