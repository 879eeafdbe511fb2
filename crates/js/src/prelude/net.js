// `net`: sockets are bound streams with more events; servers are bound emitters.
(function (natives, internal) {
  'use strict';
  const { apply, coded, invalidType, needFunction, hide } = internal;
  const EventEmitter = internal.builtin('events');
  const { Duplex } = internal.builtin('stream');
  const { kNative } = internal;
  const names = new Set([...internal.streamEvents, 'connect', 'ready', 'timeout']);

  const portOf = (port) => {
    if ((typeof port !== 'number' && typeof port !== 'string') || (typeof port === 'string' && port.trim() === '') || +port !== +port >>> 0 || port > 65535) {
      throw internal.badPort(port, 0);
    }
    return +port;
  };
  // The options, and the callback at the end.
  const given = (args) => {
    const list = args.length === 1 && Array.isArray(args[0]) ? args[0] : args;
    const last = list[list.length - 1];
    const callback = typeof last === 'function' ? last : undefined;
    const [first, second] = list;
    if (first !== null && typeof first === 'object') return [{ ...first, ...(first.port === undefined ? {} : { port: portOf(first.port) }) }, callback];
    if (typeof first === 'string' && !/^\d+$/.test(first)) return [{ path: first }, callback];
    const options = { port: first === undefined || typeof first === 'function' ? 0 : portOf(first) };
    if (typeof second === 'string') options.host = second;
    if (typeof list[list.length - 2] === 'number' && list.length > 2) options.backlog = list[list.length - 2];
    return [options, callback];
  };

  internal.needDelay = (delay, name) => {
    if (typeof delay !== 'number') throw invalidType(name, 'number', delay);
    if (!(delay >= 0 && delay < Infinity)) throw internal.outOfRange(name, 'a non-negative finite number', delay);
  };
  function Socket(options) {
    if (!(this instanceof Socket)) return new Socket(options);
    const settings = typeof options === 'object' && options !== null ? options : {};
    EventEmitter.call(this, settings);
    hide(this, 'streamSettings', { encoding: 'utf8' });
    if (settings.fd !== undefined) throw internal.notImplemented('A socket of a descriptor');
    internal.bindStream(this, natives.socket(this, settings), names);
    init(this);
    if (settings.signal) internal.builtin('stream').addAbortSignal(settings.signal, this);
  }
  const init = (socket) => {
    socket._host = null;
    hide(socket, 'timeoutDelay', undefined);
    socket.server = socket._server = null;
  };
  Object.setPrototypeOf(Socket, Duplex);
  Socket.prototype = Object.create(Duplex.prototype, { constructor: { value: Socket, writable: true, configurable: true } });
  internal.wrapSocket = (native) => {
    const socket = internal.wrapStream(Socket, native, {}, names);
    init(socket);
    return socket;
  };
  const methods = {
    connect(...args) {
      const [options, callback] = given(args);
      if (options.path === undefined && options.port === undefined) throw coded(TypeError, 'ERR_MISSING_ARGS', 'The "options" or "port" or "path" argument must be specified');
      if (options.lookup !== undefined) throw internal.notImplemented('The option "lookup" of socket.connect()');
      if (callback) this.once('connect', callback);
      if (options.noDelay) this.setNoDelay(true);
      if (options.keepAlive) this.setKeepAlive(true, options.keepAliveInitialDelay);
      if (options.timeout) this.setTimeout(options.timeout);
      this[kNative]('connect', options, this);
      return this;
    },
    setTimeout(delay, callback) {
      internal.needDelay(delay, 'msecs');
      if (callback !== undefined) needFunction(callback, 'callback');
      this.timeoutDelay = delay;
      this[kNative]('setTimeout', delay);
      if (callback) delay > 0 ? this.once('timeout', callback) : this.removeListener('timeout', callback);
      return this;
    },
    setNoDelay(enable = true) { this[kNative]('setNoDelay', enable); return this; },
    setKeepAlive(enable = false, initialDelay = undefined, interval = undefined, count = undefined) {
      const options = enable !== null && typeof enable === 'object' ? enable : { enable, initialDelay, interval, count };
      this[kNative]('setKeepAlive', !!options.enable, options.initialDelay, options.interval, options.count);
      return this;
    },
    address() { return this[kNative]('local'); },
    ref() { this[kNative]('ref', true); return this; },
    unref() { this[kNative]('ref', false); return this; },
    destroySoon() { this[kNative]('destroySoon'); },
    resetAndDestroy() { this[kNative]('reset'); return this; },
  };
  for (const name of Object.keys(methods)) hide(Socket.prototype, name, methods[name]);
  const getters = {
    connecting() { return this[kNative]('connecting'); }, pending() { return this[kNative]('pending'); }, readyState() { return this[kNative]('readyState'); },
    bytesRead() { return this[kNative]('bytesRead'); }, bytesWritten() { return this[kNative]('bytesWritten'); }, timeout() { return this.timeoutDelay; },
    remoteAddress() { return this[kNative]('remote').address; }, remotePort() { return this[kNative]('remote').port; }, remoteFamily() { return this[kNative]('remote').family; },
    localAddress() { return this[kNative]('local').address; }, localPort() { return this[kNative]('local').port; }, localFamily() { return this[kNative]('local').family; },
  };
  for (const name of Object.keys(getters)) Object.defineProperty(Socket.prototype, name, { get: getters[name], set() {}, configurable: true });
  Object.defineProperty(Socket.prototype, 'allowHalfOpen', {
    get() { return this[kNative]('halfOpen'); }, set(value) { this[kNative]('halfOpen', value); }, configurable: true,
  });

  const serverNames = new Set(['listening', 'connection', 'close', 'error', 'drop', EventEmitter.errorMonitor]);
  function Server(options, listener) {
    if (!(this instanceof Server)) return new Server(options, listener);
    if (typeof options === 'function') [options, listener] = [{}, options];
    options ??= {};
    if (typeof options !== 'object') throw invalidType('options', 'Object', options);
    EventEmitter.call(this, options);
    internal.bindStream(this, natives.netServer(options), serverNames);
    if (listener) this.on('connection', listener);
  }
  Object.setPrototypeOf(Server, EventEmitter);
  Server.prototype = Object.create(EventEmitter.prototype, { constructor: { value: Server, writable: true, configurable: true } });
  internal.giveListeners(Server.prototype);
  // What servers of all kinds have.
  const serving = {
    listen(...args) {
      const [options, callback] = given(args);
      if (this.listening) throw coded(Error, 'ERR_SERVER_ALREADY_LISTEN', 'Listen method has been called more than once without closing.');
      if (callback) this.once('listening', callback);
      const { signal } = options;
      if (signal) {
        internal.needSignal(signal, 'options.signal');
        const close = () => this.close();
        if (signal.aborted) process.nextTick(close);
        else {
          signal.addEventListener('abort', close, { once: true });
          this.once('close', () => signal.removeEventListener('abort', close));
        }
      }
      hide(this, 'listensAt', options.path);
      internal.keepServer(this);
      this[kNative]('listen', options);
      return this;
    },
    close(callback) {
      this[kNative]('close', typeof callback === 'function' ? (...args) => apply(callback, this, args) : undefined);
      return this;
    },
    address() { return this.listensAt !== undefined && this.listening ? this.listensAt : this[kNative]('address'); },
    getConnections(callback) { this[kNative]('getConnections', callback); return this; },
    ref() { this[kNative]('ref', true); return this; },
    unref() { this[kNative]('ref', false); return this; },
  };
  // A server that listens is kept until it is closed.
  const active = new Set();
  internal.keepServer = (server) => {
    if (active.has(server)) return;
    active.add(server);
    server[kNative]('onceClosed', () => natives.nextTick(() => active.delete(server)));
  };
  internal.giveServer = (prototype) => {
    for (const name of Object.keys(serving)) hide(prototype, name, serving[name]);
    if (Symbol.asyncDispose) hide(prototype, Symbol.asyncDispose, function () { return new Promise((resolve, reject) => this.close((e) => (e ? reject(e) : resolve()))); });
    Object.defineProperty(prototype, 'listening', { get() { return this[kNative]('listening'); }, configurable: true });
    Object.defineProperty(prototype, 'maxConnections', {
      get() { return this.mostConnections; }, set(value) { hide(this, 'mostConnections', value); this[kNative]('maxConnections', value); }, configurable: true,
    });
  };
  internal.giveServer(Server.prototype);

  class BlockList {
    #list = natives.blockList();
    addAddress(address, family = 'ipv4') { void family; this.#list('address', plain(address)); }
    addRange(start, end, family = 'ipv4') { void family; this.#list('range', plain(start), plain(end)); }
    addSubnet(network, prefix, family = 'ipv4') { void family; this.#list('subnet', plain(network), prefix); }
    check(address, family = 'ipv4') { void family; return this.#list('check', plain(address)); }
    get rules() { return this.#list('rules'); }
    get native() { return this.#list; }
    static isBlockList(value) { return value instanceof BlockList; }
  }
  const plain = (address) => (typeof address === 'string' ? address : address.address);
  const isIPv4 = (text) => natives.ipVersion(`${text}`) === 4;
  const isIPv6 = (text) => natives.ipVersion(`${text}`) === 6;
  const connect = (...args) => {
    const [options] = given(args);
    return new Socket(options).connect(...args);
  };
  return {
    BlockList, Socket, Stream: Socket, Server, connect, createConnection: connect, createServer: (options, listener) => new Server(options, listener),
    isIP: (text) => natives.ipVersion(`${text}`), isIPv4, isIPv6,
  };
})
