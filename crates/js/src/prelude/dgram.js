// `dgram`: sockets for datagrams are bound emitters. Addresses are IP addresses.
(function (natives, internal) {
  'use strict';
  const { coded, hide, invalidType, notImplemented } = internal;
  const EventEmitter = internal.builtin('events');
  const { Buffer } = internal.builtin('buffer');
  internal.builtin('net');
  const { kNative } = internal;
  const names = new internal.SafeSet(['listening', 'connect', 'message', 'close', 'error', EventEmitter.errorMonitor]);
  const known = ['type', 'reuseAddr', 'reusePort', 'ipv6Only', 'recvBufferSize', 'sendBufferSize', 'signal'];

  const portOf = (port, least) => {
    const value = typeof port === 'number' || (typeof port === 'string' && port.trim() !== '') ? +port : NaN;
    if (!Number.isInteger(value) || value < least || value > 65535) {
      throw internal.badPort(port, least);
    }
    return value;
  };
  const addressOf = (address, usual) => {
    if (address === undefined || address === null || address === '') return usual;
    if (typeof address !== 'string') throw invalidType('address', ['string', 'falsy'], address);
    if (natives.ipVersion(address) === 0) throw notImplemented('The name of a host in place of an IP address in dgram');
    return address;
  };
  const bytesOf = (data) => {
    if (Array.isArray(data)) return Buffer.concat(data.map(bytesOf));
    return typeof data === 'string' ? Buffer.from(data) : internal.dataOf(data, 'buffer');
  };

  function Socket(type, listener) {
    const options = type !== null && typeof type === 'object' ? type : { type };
    if (options.type !== 'udp4' && options.type !== 'udp6') throw coded(TypeError, 'ERR_SOCKET_BAD_TYPE', 'Bad socket type specified. Valid types are: udp4, udp6');
    for (const key of Object.keys(options)) {
      if (options[key] !== undefined && !known.includes(key)) throw notImplemented(`The option "${key}" of dgram.createSocket()`);
    }
    EventEmitter.call(this);
    internal.bindStream(this, natives.datagrams(options), names);
    this.type = options.type;
    if (typeof listener === 'function') this.on('message', listener);
    const { signal } = options;
    if (signal === undefined) return;
    internal.needSignal(signal, 'options.signal');
    const close = () => this.close();
    if (signal.aborted) close();
    else {
      signal.addEventListener('abort', close, { once: true });
      this.once('close', () => signal.removeEventListener('abort', close));
    }
  }
  Object.setPrototypeOf(Socket, EventEmitter);
  Socket.prototype = Object.create(EventEmitter.prototype, { constructor: { value: Socket, writable: true, configurable: true } });
  internal.giveListeners(Socket.prototype);
  // A socket is kept from the first call that has events as its consequence until it is closed.
  const call = (socket, ...args) => {
    const value = socket[kNative](...args);
    internal.keepServer(socket);
    return value;
  };
  const is4 = (socket) => socket.type === 'udp4';
  const bound = (callback, socket) => (callback === undefined ? undefined : () => internal.apply(callback, socket, []));
  const methods = {
    bind(...args) {
      const callback = typeof args[args.length - 1] === 'function' ? args.pop() : undefined;
      const [first, second] = args;
      const { port, address } = first !== null && typeof first === 'object' ? first : { port: first, address: second };
      call(this, 'bind', addressOf(address, is4(this) ? '0.0.0.0' : '::'), port === undefined || port === null ? 0 : portOf(port, 0), bound(callback, this));
      return this;
    },
    send(data, ...args) {
      const callback = typeof args[args.length - 1] === 'function' ? args.pop() : undefined;
      let bytes = bytesOf(data);
      if (typeof args[1] === 'number') {
        const [offset, length] = args.splice(0, 2);
        if (offset < 0 || offset > bytes.length) throw coded(RangeError, 'ERR_BUFFER_OUT_OF_BOUNDS', '"offset" is outside of buffer bounds');
        if (length < 0 || offset + length > bytes.length) throw coded(RangeError, 'ERR_BUFFER_OUT_OF_BOUNDS', '"length" is outside of buffer bounds');
        bytes = bytes.subarray(offset, offset + length);
      }
      const [port, address] = args;
      if (port === undefined || port === null) call(this, 'send', bytes, callback);
      else call(this, 'send', bytes, callback, addressOf(address, is4(this) ? '127.0.0.1' : '::1'), portOf(port, 1));
    },
    connect(port, ...args) {
      const callback = typeof args[args.length - 1] === 'function' ? args.pop() : undefined;
      const [to, at] = [addressOf(args[0], is4(this) ? '127.0.0.1' : '::1'), portOf(port, 1)];
      call(this, 'connect', to, at);
      if (callback) this.once('connect', callback);
    },
    disconnect() { this[kNative]('disconnect'); },
    remoteAddress() { return this[kNative]('remote'); },
    address() {
      const found = this[kNative]('address');
      if (found !== undefined) return found;
      throw Object.assign(new Error('getsockname EBADF'), { errno: -9, code: 'EBADF', syscall: 'getsockname' });
    },
    close(callback) {
      if (typeof callback === 'function') this.on('close', callback);
      call(this, 'close');
      return this;
    },
    ref() { return this; },
    unref() { throw notImplemented('socket.unref() of dgram'); },
    addSourceSpecificMembership(source, group, at) { this[kNative]('addSource', source, group, at); },
    dropSourceSpecificMembership(source, group, at) { this[kNative]('dropSource', source, group, at); },
  };
  for (const name of ['addMembership', 'dropMembership']) {
    methods[name] = function (group, at) {
      if (!group) throw coded(TypeError, 'ERR_MISSING_ARGS', 'The "multicastAddress" argument must be specified');
      this[kNative](name, group, at);
    };
  }
  for (const name of ['setTTL', 'setMulticastTTL']) {
    methods[name] = function (ttl) {
      if (typeof ttl !== 'number') throw invalidType('ttl', 'number', ttl);
      this[kNative](name, ttl);
      return ttl;
    };
  }
  methods.setBroadcast = function (flag) { this[kNative]('setBroadcast', !!flag); };
  methods.setMulticastLoopback = function (flag) { this[kNative]('setMulticastLoopback', !!flag); return flag; };
  methods.setMulticastInterface = function (at) {
    if (typeof at !== 'string') throw invalidType('interfaceAddress', 'string', at);
    this[kNative]('setMulticastInterface', at);
  };
  for (const name of ['getRecvBufferSize', 'getSendBufferSize', 'setRecvBufferSize', 'setSendBufferSize']) {
    methods[name] = function (size) { return this[kNative](name, size); };
  }
  for (const name of Object.keys(methods)) hide(Socket.prototype, name, methods[name]);
  if (Symbol.asyncDispose) hide(Socket.prototype, Symbol.asyncDispose, function () { return new Promise((resolve) => this.close(resolve)); });
  return { Socket, createSocket: (type, listener) => new Socket(type, listener) };
})
