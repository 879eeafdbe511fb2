// `MessageChannel`, `MessagePort` and `structuredClone`. Messages are copies.
(function (natives, internal) {
  'use strict';
  const { needFunction, hide } = internal;
  internal.builtin('stream');
  const { kNative } = internal;
  const kOwn = Symbol('own');
  const refused = (value, error) => {
    const shown = typeof value === 'function' || typeof value === 'symbol' ? String(value) : `#<${value?.constructor?.name ?? 'Object'}>`;
    return error instanceof TypeError ? new DOMException(`${shown} could not be cloned.`, 'DataCloneError') : error;
  };
  const copied = internal.copyMessage = (value, f) => {
    try {
      return f();
    } catch (error) {
      throw refused(value, error);
    }
  };
  const messageEvent = internal.messageEvent = (data) => Object.defineProperty(new Event('message'), 'data', { value: data, enumerable: true });
  const names = new Set(['message', 'close']);
  // A port that is open and has a listener is kept.
  const active = new Set();
  class MessagePort extends EventTarget {
    constructor(key, native) {
      if (key !== kOwn) throw internal.coded(TypeError, 'ERR_CONSTRUCT_CALL_INVALID', 'Constructor cannot be called');
      super();
      internal.builtin('events').call(this);
      internal.bindStream(this, native, names);
      hide(this, 'events', new Map());
      hide(this, 'handler', null);
    }
    postMessage(value) { copied(value, () => this[kNative]('post', value)); }
    start() {}
    close() { this[kNative]('close'); }
    ref() { this[kNative]('ref', true); }
    unref() { this[kNative]('ref', false); }
    hasRef() { return this[kNative]('hasRef'); }
    addEventListener(name, listener, options) {
      if (!names.has(name)) return super.addEventListener(name, listener, options);
      if (this.events.has(listener)) return undefined;
      const port = this;
      const call = (data) => {
        if (options?.once) port.removeEventListener(name, listener);
        const event = name === 'message' ? messageEvent(data) : new Event(name);
        Object.defineProperty(event, 'target', { value: port });
        if (typeof listener === 'function') listener.call(port, event);
        else listener.handleEvent(event);
      };
      this.events.set(listener, call);
      this.on(name, call);
      return undefined;
    }
    removeEventListener(name, listener, options) {
      const call = this.events.get(listener);
      if (call === undefined) return super.removeEventListener(name, listener, options);
      this.events.delete(listener);
      this.off(name, call);
      return undefined;
    }
    get onmessage() { return this.handler; }
    set onmessage(f) {
      if (this.handler !== null) this.removeEventListener('message', this.handler);
      this.handler = typeof f === 'function' ? f : null;
      if (this.handler !== null) this.addEventListener('message', this.handler);
    }
  }
  internal.giveListeners(MessagePort.prototype);
  const { on, once, prependOnceListener } = internal.builtin('events').prototype;
  const { addListener } = MessagePort.prototype;
  const kept = function (name, listener) {
    needFunction(listener, 'listener');
    if (!active.has(this)) {
      active.add(this);
      this[kNative]('onceClosed', () => natives.nextTick(() => active.delete(this)));
    }
    return addListener.call(this, name, listener);
  };
  void on;
  for (const name of ['on', 'addListener']) hide(MessagePort.prototype, name, kept);
  hide(MessagePort.prototype, 'once', once);
  hide(MessagePort.prototype, 'prependOnceListener', prependOnceListener);
  class MessageChannel {
    constructor() {
      const [one, two] = natives.channel();
      this.port1 = new MessagePort(kOwn, one);
      this.port2 = new MessagePort(kOwn, two);
    }
  }
  const receiveMessageOnPort = (port) => {
    const found = port[kNative]('receive');
    return found === undefined ? undefined : { message: found[0] };
  };
  const structuredClone = (value) => copied(value, () => natives.clone(value));
  const portOf = (native) => new MessagePort(kOwn, native);
  return { portOf, MessageChannel, MessagePort, receiveMessageOnPort, structuredClone };
})
