// `http`: messages are bound streams with fields; servers and agents are bound emitters.
(function (natives, internal) {
  'use strict';
  const { coded, invalidType, needFunction, hide } = internal;
  const EventEmitter = internal.builtin('events');
  const { Readable, Writable, Stream } = internal.builtin('stream');
  internal.builtin('net');
  const { kNative, streamEvents } = internal;
  internal.bare = () => ({});
  const inherit = (Class, Parent) => {
    Object.setPrototypeOf(Class, Parent);
    Class.prototype = Object.create(Parent.prototype, { constructor: { value: Class, writable: true, configurable: true } });
  };
  const define = (prototype, methods) => { for (const name of Object.keys(methods)) hide(prototype, name, methods[name]); };
  // Fields of Rust; `cached` ones are made once, since a program may change the object.
  const fields = (prototype, names, settable = []) => {
    for (const name of names) {
      Object.defineProperty(prototype, name, {
        get() { return this[kNative](name); },
        set(value) {
          if (settable.includes(name)) this[kNative](name, value);
          else Object.defineProperty(this, name, { value, writable: true, configurable: true, enumerable: true });
        },
        configurable: true, enumerable: true,
      });
    }
  };
  const cached = (prototype, names) => {
    for (const name of names) {
      Object.defineProperty(prototype, name, {
        get() {
          const value = this[kNative](name);
          if (Object.keys(value).length > 0) Object.defineProperty(this, name, { value, writable: true, configurable: true, enumerable: true });
          return value;
        },
        set(value) { Object.defineProperty(this, name, { value, writable: true, configurable: true, enumerable: true }); },
        configurable: true, enumerable: true,
      });
    }
  };
  const timed = {
    setTimeout(delay, callback) {
      if (this instanceof ClientRequest) internal.needDelay(delay, 'msecs');
      if (callback) this.once('timeout', callback);
      this[kNative]('setTimeout', delay);
      return this;
    },
  };

  function IncomingMessage() { throw internal.notImplemented('new IncomingMessage()'); }
  inherit(IncomingMessage, Readable);
  const incomingNames = new Set([...streamEvents, 'aborted', 'timeout']);
  internal.wrapIncoming = (native) => internal.wrapStream(IncomingMessage, native, {}, incomingNames);
  fields(IncomingMessage.prototype, ['method', 'url', 'httpVersion', 'statusCode', 'statusMessage', 'complete', 'aborted', 'upgrade', 'socket'], ['url']);
  cached(IncomingMessage.prototype, ['headers', 'rawHeaders', 'trailers', 'rawTrailers']);
  define(IncomingMessage.prototype, timed);
  Object.defineProperty(IncomingMessage.prototype, 'connection', { get() { return this.socket; }, configurable: true });
  for (const [name, place] of [['httpVersionMajor', 0], ['httpVersionMinor', 1]]) {
    Object.defineProperty(IncomingMessage.prototype, name, { get() { return Number(this.httpVersion.split('.')[place]); }, configurable: true });
  }
  const distinct = (raw) => {
    const all = { __proto__: null };
    for (let i = 0; i < raw.length; i += 2) (all[raw[i].toLowerCase()] ??= []).push(raw[i + 1]);
    return all;
  };
  Object.defineProperty(IncomingMessage.prototype, 'headersDistinct', { get() { return distinct(this.rawHeaders); }, configurable: true });
  Object.defineProperty(IncomingMessage.prototype, 'trailersDistinct', { get() { return distinct(this.rawTrailers); }, configurable: true });

  // Pairs of names and values of what a program passes as headers.
  const pairsOf = (headers) => {
    if (headers === undefined || headers === null) return [];
    if (Array.isArray(headers)) {
      if (headers.length > 0 && Array.isArray(headers[0])) return headers.map(([name, value]) => [name, value]);
      if (headers.length % 2 !== 0) throw internal.invalidValue('headers', headers);
      const pairs = [];
      for (let i = 0; i < headers.length; i += 2) pairs.push([headers[i], headers[i + 1]]);
      return pairs;
    }
    if (typeof headers[Symbol.iterator] === 'function') return [...headers];
    return Object.keys(headers).map((name) => [name, headers[name]]);
  };
  const needName = (name) => {
    if (typeof name !== 'string') throw invalidType('name', 'string', name);
  };

  function OutgoingMessage() { throw internal.notImplemented('new OutgoingMessage()'); }
  inherit(OutgoingMessage, Stream);
  const outgoing = {
    setHeader(name, value) {
      if (typeof name !== 'string') throw coded(TypeError, 'ERR_INVALID_HTTP_TOKEN', `Header name must be a valid HTTP token ["${String(name)}"]`);
      this[kNative]('setHeader', name, value);
      this.given.set(name.toLowerCase(), value);
      return this;
    },
    appendHeader(name, value) {
      const before = this.hasHeader(name) ? this.getHeader(name) : undefined;
      this[kNative]('appendHeader', name, value);
      this.given.set(name.toLowerCase(), before === undefined ? value : [].concat(before, value));
      return this;
    },
    setHeaders(headers) {
      if (!(headers instanceof Map) && typeof headers?.forEach !== 'function') throw invalidType('headers', ['Headers', 'Map'], headers);
      for (const [name, value] of headers) this.setHeader(name, value);
      return this;
    },
    getHeader(name) {
      needName(name);
      const value = this[kNative]('getHeader', name);
      return value !== undefined && this.given.has(name.toLowerCase()) ? this.given.get(name.toLowerCase()) : value;
    },
    getHeaders() {
      const all = { __proto__: null };
      for (const name of this.getHeaderNames()) all[name] = this.getHeader(name);
      return all;
    },
    hasHeader(name) { needName(name); return this[kNative]('hasHeader', name); },
    removeHeader(name) { needName(name); this[kNative]('removeHeader', name); this.given.delete(name.toLowerCase()); },
    getHeaderNames() { return this[kNative]('headerNames'); },
    getRawHeaderNames() { return this[kNative]('rawHeaderNames'); },
    flushHeaders() { this[kNative]('flushHeaders'); },
    addTrailers(headers) { this[kNative]('addTrailers', pairsOf(headers)); },
    ...timed,
  };
  for (const name of ['write', 'end', 'cork', 'uncork', 'setDefaultEncoding']) outgoing[name] = Writable.prototype[name];
  define(OutgoingMessage.prototype, outgoing);
  hide(OutgoingMessage.prototype, 'pipe', function () { this.emit('error', coded(Error, 'ERR_STREAM_CANNOT_PIPE', 'Cannot pipe, not readable')); });
  Object.defineProperty(OutgoingMessage.prototype, 'errored', {
    get() {
      const error = this[kNative]('errored');
      return error === null && this.destroyed ? undefined : error;
    },
    configurable: true,
  });
  for (const name of ['destroyed', 'closed', 'writable', 'writableLength', 'writableHighWaterMark', 'writableEnded', 'writableFinished', 'writableCorked', 'writableNeedDrain', 'writableObjectMode']) {
    Object.defineProperty(OutgoingMessage.prototype, name, Object.getOwnPropertyDescriptor(Writable.prototype, name));
  }
  fields(OutgoingMessage.prototype, ['headersSent', 'socket', 'strictContentLength'], ['strictContentLength']);
  Object.defineProperty(OutgoingMessage.prototype, 'connection', { get() { return this.socket; }, configurable: true });
  Object.defineProperty(OutgoingMessage.prototype, 'finished', { get() { return this.writableEnded; }, configurable: true });
  const prepare = (message) => { hide(message, 'given', new Map()); return message; };

  function ServerResponse() { throw internal.notImplemented('new ServerResponse()'); }
  inherit(ServerResponse, OutgoingMessage);
  const responseNames = new Set([...streamEvents, 'timeout', 'socket']);
  internal.wrapResponse = (native, request) => {
    const response = prepare(internal.wrapStream(ServerResponse, native, {}, responseNames));
    response.req = request;
    return response;
  };
  fields(ServerResponse.prototype, ['statusMessage'], ['statusMessage']);
  Object.defineProperty(ServerResponse.prototype, 'statusCode', { get() { return this[kNative]('status'); }, set(value) { this[kNative]('status', value); }, configurable: true, enumerable: true });
  for (const [name, first] of [['sendDate', true], ['shouldKeepAlive', true]]) {
    Object.defineProperty(ServerResponse.prototype, name, {
      get() { return this[`${name}Given`] ?? first; }, set(value) { hide(this, `${name}Given`, value); this[kNative](name, value); }, configurable: true, enumerable: true,
    });
  }
  define(ServerResponse.prototype, {
    writeHead(status, reason, headers) {
      const code = status | 0;
      if (code < 100 || code > 999) throw coded(RangeError, 'ERR_HTTP_INVALID_STATUS_CODE', `Invalid status code: ${status}`);
      if (typeof reason !== 'string') [reason, headers] = [undefined, reason ?? headers];
      const pairs = pairsOf(headers);
      this[kNative]('writeHead', code, reason, pairs);
      return this;
    },
    writeContinue(callback) { this[kNative]('writeContinue', callback); },
    writeProcessing() { this[kNative]('writeProcessing'); },
    writeEarlyHints(hints, callback) {
      internal.needObject(hints, 'hints');
      this[kNative]('writeEarlyHints', pairsOf(hints));
      if (typeof callback === 'function') process.nextTick(callback);
    },
    assignSocket() { throw internal.notImplemented('response.assignSocket()'); },
    detachSocket() { throw internal.notImplemented('response.detachSocket()'); },
  });

  const serverNames = new Set(['request', 'checkContinue', 'checkExpectation', 'connect', 'upgrade', 'clientError', 'dropRequest', 'timeout', 'connection', 'listening', 'close', 'error', EventEmitter.errorMonitor]);
  function Server(options, listener) {
    if (!(this instanceof Server)) return new Server(options, listener);
    if (typeof options === 'function') [options, listener] = [{}, options];
    options ??= {};
    if (typeof options !== 'object') throw invalidType('options', 'Object', options);
    EventEmitter.call(this, options);
    internal.bindStream(this, natives.httpServer(options), serverNames);
    if (listener) this.on('request', listener);
  }
  inherit(Server, EventEmitter);
  internal.giveListeners(Server.prototype);
  internal.giveServer(Server.prototype);
  const limits = ['headersTimeout', 'requestTimeout', 'keepAliveTimeout', 'timeout', 'maxHeadersCount', 'maxRequestsPerSocket'];
  fields(Server.prototype, limits, limits);
  define(Server.prototype, {
    setTimeout(delay, callback) {
      if (typeof delay === 'function') [delay, callback] = [0, delay];
      this.timeout = delay ?? 0;
      if (callback) this.on('timeout', callback);
      return this;
    },
    closeAllConnections() { this[kNative]('closeAll'); },
    closeIdleConnections() { this[kNative]('closeIdle'); },
  });

  function Agent(options = {}) {
    if (!(this instanceof Agent)) return new Agent(options);
    EventEmitter.call(this);
    this.options = { ...options };
    this.keepAlive = !!options.keepAlive;
    this.maxSockets = options.maxSockets ?? Infinity;
    this.maxFreeSockets = options.maxFreeSockets ?? 256;
    this.maxTotalSockets = options.maxTotalSockets ?? Infinity;
    this.defaultPort = 80;
    this.protocol = 'http:';
    internal.bindStream(this, natives.httpAgent(options), new Set(['free']));
  }
  inherit(Agent, EventEmitter);
  internal.giveListeners(Agent.prototype);
  define(Agent.prototype, { destroy() { this[kNative]('destroy'); } });
  // Rust has the numbers only: the lists are of one name, and their elements are empty.
  for (const name of ['sockets', 'freeSockets', 'requests']) {
    Object.defineProperty(Agent.prototype, name, {
      get() {
        const count = this[kNative](name);
        return count === 0 ? {} : { all: Array.from({ length: count }, () => ({})) };
      },
      configurable: true, enumerable: true,
    });
  }
  let globalAgent;

  const requestNames = new Set([...streamEvents, 'response', 'socket', 'continue', 'information', 'upgrade', 'connect', 'timeout']);
  // The options of a request, of a URL or an object.
  const given = (input, options, callback) => {
    if (typeof options === 'function') [options, callback] = [undefined, options];
    let target = {};
    if (typeof input === 'string' || (typeof input?.href === 'string' && typeof input.hostname === 'string')) {
      const parts = /^(https?:)\/\/(?:([^/?#@]*)@)?(\[[^\]]*\]|[^/?#:]*)(?::(\d+))?([^#]*)/.exec(typeof input === 'string' ? input : input.href);
      if (parts === null) throw coded(TypeError, 'ERR_INVALID_URL', 'Invalid URL');
      target = { protocol: parts[1], hostname: parts[3].replace(/^\[|\]$/g, ''), port: parts[4] === undefined ? undefined : Number(parts[4]), path: parts[5].startsWith('/') ? parts[5] : `/${parts[5]}`, ...(parts[2] === undefined ? {} : { auth: decodeURIComponent(parts[2]) }) };
    } else if (input !== null && typeof input === 'object') target = { ...input };
    return [{ ...target, ...options }, callback];
  };
  function ClientRequest(input, options, callback) {
    if (!(this instanceof ClientRequest)) return new ClientRequest(input, options, callback);
    const [settings, listener] = given(input, options, callback);
    const { signal, agent, method, headers } = settings;
    if (method !== undefined && typeof method !== 'string') throw invalidType('options.method', 'string', method);
    if (settings.protocol !== undefined && settings.protocol !== 'http:') {
      throw coded(TypeError, 'ERR_INVALID_PROTOCOL', `Protocol "${settings.protocol}" not supported. Expected "http:"`);
    }
    const path = settings.path ?? '/';
    if (/[^\u0021-\u00ff]/.test(path)) throw coded(TypeError, 'ERR_UNESCAPED_CHARACTERS', 'Request path contains unescaped characters');
    internal.needSignal(signal, 'options.signal');
    if (settings.timeout !== undefined) internal.needDelay(settings.timeout, 'timeout');
    if (agent !== undefined && agent !== null && agent !== false && agent?.[kNative] === undefined) throw invalidType('options.agent', ['Agent-like Object', 'undefined', 'false'], agent);
    EventEmitter.call(this);
    hide(this, 'streamSettings', { encoding: 'utf8' });
    prepare(this);
    const native = natives.httpRequest(this, {
      host: settings.hostname ?? settings.host ?? 'localhost', port: Number(settings.port ?? settings.defaultPort ?? 80), socketPath: settings.socketPath, method, requestPath: path, auth: settings.auth, timeout: settings.timeout,
      maxHeaderSize: settings.maxHeaderSize, setHost: settings.setHost, isRaw: Array.isArray(headers), pairs: pairsOf(headers), joinDuplicateHeaders: settings.joinDuplicateHeaders,
      agentNative: agent === false ? false : agent?.[kNative],
    });
    internal.bindStream(this, native, requestNames);
    this.host = settings.hostname ?? settings.host ?? 'localhost';
    this.protocol = 'http:';
    if (listener) this.once('response', listener);
    if (signal) {
      const abort = () => this.destroy(internal.abortError(signal.reason));
      if (signal.aborted) abort();
      else {
        signal.addEventListener('abort', abort, { once: true });
        this.once('close', () => signal.removeEventListener('abort', abort));
      }
    }
  }
  inherit(ClientRequest, OutgoingMessage);
  fields(ClientRequest.prototype, ['method', 'path', 'reusedSocket']);
  define(ClientRequest.prototype, {
    abort() { this.aborted = true; this.destroy(); },
    setNoDelay(enable = true) { this.socket?.setNoDelay(enable); },
    setSocketKeepAlive(enable, delay) { this.socket?.setKeepAlive(enable, delay); },
  });
  ClientRequest.prototype.aborted = false;
  const request = (input, options, callback) => new ClientRequest(input, options, callback);
  const STATUS_CODES = {};
  for (let code = 100; code < 600; code++) {
    const text = natives.httpStatus(code);
    if (text !== undefined) STATUS_CODES[code] = text;
  }
  void needFunction;
  return {
    Agent, ClientRequest, IncomingMessage, OutgoingMessage, Server, ServerResponse, METHODS: natives.httpMethods(), STATUS_CODES, maxHeaderSize: 16384,
    get globalAgent() { return (globalAgent ??= new Agent({ isGlobal: true, keepAlive: true })); },
    createServer: (options, listener) => new Server(options, listener), request,
    get: (input, options, callback) => request(input, options, callback).end(),
    validateHeaderName: (name) => { natives.httpCheckHeader(`${name}`); },
    validateHeaderValue: (name, value) => {
      if (value === undefined) throw coded(TypeError, 'ERR_HTTP_INVALID_HEADER_VALUE', `Invalid value "undefined" for header "${name}"`);
      natives.httpCheckHeader(`${name}`, `${value}`);
    },
  };
})
