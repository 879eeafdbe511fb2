// `readline`: interfaces are bound emitters.
(function (natives, internal) {
  'use strict';
  const { apply, coded, invalidType, needFunction, hide, notImplemented } = internal;
  const EventEmitter = internal.builtin('events');
  internal.builtin('stream');
  const { kNative } = internal;
  const names = new Set(['line', 'close', 'pause', 'resume', 'error', 'history', 'SIGINT', 'SIGTSTP', EventEmitter.errorMonitor]);
  const kLines = Symbol('lines');
  const kReaders = Symbol('readers');

  function Interface(input, output, completer, terminal) {
    if (!(this instanceof Interface)) return new Interface(input, output, completer, terminal);
    const options = input?.input === undefined ? { input, output, completer, terminal } : input;
    EventEmitter.call(this);
    const { crlfDelay, historySize, history, prompt, signal } = options;
    if (options.completer !== undefined && options.completer !== null && typeof options.completer !== 'function') throw internal.invalidValue('completer', options.completer);
    if (history !== undefined && !Array.isArray(history)) throw invalidType('history', 'Array', history);
    if (historySize !== undefined && (typeof historySize !== 'number' || !(historySize >= 0))) throw internal.invalidValue('historySize', historySize);
    internal.needSignal(signal, 'options.signal');
    if (internal.nativeOf(options.input) === undefined) throw notImplemented('An input of readline that is no stream of this crate');
    const [controller, stop] = internal.follow(signal);
    this.input = options.input;
    this.output = options.output;
    this.terminal = !!options.terminal;
    const write = options.output == null ? undefined : (text) => { this.output.write(text); };
    const native = natives.readline(options.input, write, {
      controller, history, historySize, terminal: this.terminal, columns: options.output?.columns,
      completer: options.completer, crlfDelay: crlfDelay === undefined ? undefined : Number(crlfDelay), prompt: prompt === undefined ? undefined : `${prompt}`,
    });
    internal.bindStream(this, native, names);
    // The input keeps the interface until it is closed.
    if (!this.input[kReaders]) hide(this.input, kReaders, new Set());
    const readers = this.input[kReaders];
    readers.add(this);
    native('onceClosed', () => {
      stop();
      natives.nextTick(() => readers.delete(this));
    });
  }
  Object.setPrototypeOf(Interface, EventEmitter);
  Interface.prototype = Object.create(EventEmitter.prototype, { constructor: { value: Interface, writable: true, configurable: true } });
  internal.giveListeners(Interface.prototype);
  const asked = (options) => {
    const { signal } = options !== null && typeof options === 'object' ? options : {};
    internal.needSignal(signal, 'options.signal');
    return internal.follow(signal);
  };
  const methods = {
    question(query, options, callback) {
      if (typeof options === 'function') [options, callback] = [undefined, options];
      const [controller, stop] = asked(options);
      if (typeof callback === 'function') {
        this[kNative]('question', `${query}`, (answer) => {
          stop();
          callback(answer);
        }, controller);
      }
    },
    prompt(keepsCursor) { this[kNative]('prompt', keepsCursor); },
    setPrompt(prompt) { this[kNative]('setPrompt', `${prompt}`); },
    getPrompt() { return this[kNative]('getPrompt'); },
    write(data, key) {
      if (key !== undefined) throw notImplemented('A key of rl.write()');
      this[kNative]('write', `${data}`);
    },
    pause() { this[kNative]('pause'); return this; },
    resume() { this[kNative]('resume'); return this; },
    close() { this[kNative]('close'); },
    [Symbol.asyncIterator]() {
      if (!this[kLines]) hide(this, kLines, EventEmitter.on(this, 'line', { close: ['close'], highWaterMark: 1024, [internal.kFirst]: true }));
      return this[kLines];
    },
  };
  for (const name of Reflect.ownKeys(methods)) hide(Interface.prototype, name, methods[name]);
  if (Symbol.dispose) hide(Interface.prototype, Symbol.dispose, methods.close);
  for (const name of ['closed', 'paused', 'line', 'cursor']) {
    Object.defineProperty(Interface.prototype, name, { get() { return this[kNative](name); }, set() {}, configurable: true });
  }

  // Sequences for a terminal.
  const sent = (stream, text, callback) => {
    if (callback !== undefined) needFunction(callback, 'callback');
    if (stream === null || stream === undefined || text === '') {
      if (callback) process.nextTick(callback, null);
      return true;
    }
    return stream.write(text, callback);
  };
  const cursorTo = (stream, x, y, callback) => {
    if (typeof y === 'function') [y, callback] = [undefined, y];
    for (const [name, value] of [['x', x], ['y', y]]) if (Number.isNaN(value)) throw internal.invalidValue(name, value);
    if (typeof x !== 'number' && typeof y !== 'number') return sent(stream, '', callback);
    if (typeof x !== 'number') throw coded(TypeError, 'ERR_INVALID_CURSOR_POS', 'Cannot set cursor row without setting its column');
    return sent(stream, typeof y === 'number' ? `\x1b[${y + 1};${x + 1}H` : `\x1b[${x + 1}G`, callback);
  };
  const part = (steps, back, forth) => (steps < 0 ? `\x1b[${-steps}${back}` : steps > 0 ? `\x1b[${steps}${forth}` : '');
  const moveCursor = (stream, dx, dy, callback) => sent(stream, part(dx, 'D', 'C') + part(dy, 'A', 'B'), callback);
  const clearLine = (stream, direction, callback) => sent(stream, direction < 0 ? '\x1b[1K' : direction > 0 ? '\x1b[0K' : '\x1b[2K', callback);
  const clearScreenDown = (stream, callback) => sent(stream, '\x1b[0J', callback);

  const readline = {
    Interface, cursorTo, moveCursor, clearLine, clearScreenDown,
    createInterface: (...args) => new Interface(...args),
  };
  function PromisesInterface(...args) { apply(Interface, this, args); }
  Object.setPrototypeOf(PromisesInterface, Interface);
  PromisesInterface.prototype = Object.create(Interface.prototype, { constructor: { value: PromisesInterface, writable: true, configurable: true } });
  Object.defineProperty(PromisesInterface, 'name', { value: 'Interface' });
  hide(PromisesInterface.prototype, 'question', function question(query, options) {
    const [controller, stop] = asked(options);
    const answer = this[kNative]('ask', `${query}`, controller);
    if (controller) internal.then(answer, stop, stop);
    return answer;
  });
  readline.promises = { Interface: PromisesInterface, createInterface: (...args) => new PromisesInterface(...args) };
  hide(Interface.prototype.question, Symbol.for('nodejs.util.promisify.custom'), function question(query, options) {
    return new Promise((resolve) => this.question(query, options, resolve));
  });
  return readline;
})
