// What the other files of the prelude share: saved intrinsics and errors.
(function (natives, internal) {
  'use strict';
  const { apply, ownKeys } = Reflect;
  const then = Promise.prototype.then;
  const PromiseConstructor = Promise;
  internal.apply = apply;
  // Maps and sets whose methods a program cannot patch.
  const safe = (Class) => {
    class Safe extends Class {}
    const methods = ownKeys(Class.prototype);
    for (let i = 0; i < methods.length; i++) {
      if (methods[i] !== 'constructor') Object.defineProperty(Safe.prototype, methods[i], Object.getOwnPropertyDescriptor(Class.prototype, methods[i]));
    }
    return Object.freeze(Safe.prototype) && Safe;
  };
  internal.SafeMap = safe(Map);
  internal.SafeSet = safe(Set);
  // Copies and lists without the methods of `Array.prototype`, which a program may have patched.
  internal.copy = (list, f) => {
    const copied = [];
    for (let i = 0; i < list.length; i++) copied[i] = f ? f(list[i]) : list[i];
    return copied;
  };
  internal.prepended = (first, list) => {
    const longer = [first];
    for (let i = 0; i < list.length; i++) longer[i + 1] = list[i];
    return longer;
  };
  // A reaction that a program which has patched `then` does not see.
  internal.then = (promise, f, g) => apply(then, promise, [f, g]);
  internal.resolved = (value) => new PromiseConstructor((resolve) => resolve(value));

  const classes = { Error, TypeError, RangeError, SyntaxError, URIError, EvalError, ReferenceError, AggregateError };
  const hide = (object, key, value) =>
    Object.defineProperty(object, key, { value, writable: true, configurable: true, enumerable: false });
  internal.hide = hide;

  // Node's error: a class of JavaScript with a code, whose stack begins with `Name [CODE]`.
  const coded = (Class, code, message) => {
    const error = new Class(message);
    error.code = code;
    if (typeof error.stack === 'string') hide(error, 'stack', `${error.name} [${code}]: ${message}\n${error.stack}`);
    return error;
  };
  internal.coded = coded;
  // What Node has and this crate does not.
  internal.notImplemented = (what) => coded(Error, 'ERR_METHOD_NOT_IMPLEMENTED', `${what} is not implemented`);
  internal.systemError = (code, what, info) => {
    const { syscall, path } = info;
    const error = coded(Error, code, `${what}: ${syscall} returned ${info.code} (${info.message})${path === undefined ? '' : ` ${path}`}`);
    hide(error, 'name', 'SystemError');
    error.info = info;
    error.errno = info.errno;
    error.syscall = syscall;
    if (path !== undefined) error.path = path;
    return error;
  };
  const abortError = (reason, message = 'The operation was aborted') => {
    const error = new Error(message, reason === undefined ? undefined : { cause: reason });
    error.name = 'AbortError';
    error.code = 'ABORT_ERR';
    return error;
  };
  internal.abortError = abortError;

  // The error of Rust: name, message and the fields that Rust knows.
  internal.makeError = (name, message, fields) => {
    const Class = classes[name] || Error;
    const error = Class === AggregateError ? new Class(fields.errors || [], message) : new Class(message);
    if (!classes[name] && error.name !== name) error.name = name;
    for (const key of Object.keys(fields)) {
      if (key === 'cause') hide(error, key, fields[key]);
      else if (key !== 'errors') error[key] = fields[key];
    }
    return error;
  };
  internal.unhandledRejection = (value) => {
    const error = coded(class extends Error { get name() { return 'UnhandledPromiseRejection'; } }, 'ERR_UNHANDLED_REJECTION',
      'This error originated either by throwing inside of an async function without a catch block, or by rejecting a ' +
      `promise which was not handled with .catch(). The promise rejected with the reason "${internal.shown(value)}".`);
    hide(error, 'stack', `${error.name}: ${error.message}`);
    return error;
  };
  // What is printed of an uncaught error.
  internal.described = (value, isRejection) => {
    const error = isRejection && !(value instanceof Error) ? internal.unhandledRejection(value) : value;
    const isObject = error !== null && (typeof error === 'object' || typeof error === 'function');
    return isObject ? internal.builtin('util').inspect(error) : String(error);
  };
  internal.shown = (value) => {
    if (typeof value === 'object' && value !== null) return '#<Object>';
    return typeof value === 'symbol' ? value.toString() : String(value);
  };

  const describe = (value) => {
    if (value == null) return ` Received ${value}`;
    if (typeof value === 'function') return ` Received function ${value.name}`;
    if (typeof value === 'object') {
      if (value.constructor && value.constructor.name) return ` Received an instance of ${value.constructor.name}`;
      return ` Received ${internal.builtin('util').inspect(value, { depth: -1 })}`;
    }
    let text = internal.builtin('util').inspect(value, { colors: false });
    if (text.length > 28) text = `${text.slice(0, 25)}...`;
    return ` Received type ${typeof value} (${text})`;
  };
  const primitives = ['string', 'number', 'boolean', 'object', 'function', 'symbol', 'bigint', 'undefined'];
  const invalidType = (name, expected, value) => {
    const list = [].concat(expected);
    const types = list.filter((type) => primitives.includes(type));
    const others = list.filter((type) => !primitives.includes(type));
    const join = (all) => (all.length > 2 ? `${all.slice(0, -1).join(', ')}, or ${all[all.length - 1]}` : all.join(' or '));
    const kind = /argument|property/.test(name) ? name : name.includes('.') ? `The "${name}" property` : `The "${name}" argument`;
    let text = `${kind} must be `;
    if (types.length) text += `${types.length > 1 ? 'one of type' : 'of type'} ${join(types)}`;
    if (types.length && others.length) text += ' or ';
    if (others.length) text += `an instance of ${join(others)}`;
    return coded(TypeError, 'ERR_INVALID_ARG_TYPE', `${text}.${describe(value)}`);
  };
  internal.invalidType = invalidType;
  internal.badPort = (port, least) =>
    coded(RangeError, 'ERR_SOCKET_BAD_PORT', `Port should be ${least ? '>' : '>='} 0 and < 65536.${describe(port)}.`);
  internal.invalidValue = (name, value, reason = 'is invalid') =>
    coded(TypeError, 'ERR_INVALID_ARG_VALUE',
      `The ${name.includes('.') ? 'property' : 'argument'} '${name}' ${reason}. Received ${internal.builtin('util').inspect(value)}`);
  internal.outOfRange = (name, range, value) =>
    coded(RangeError, 'ERR_OUT_OF_RANGE', `The value of "${name}" is out of range. It must be ${range}. Received ${internal.builtin('util').inspect(value)}`);
  internal.needFunction = (value, name) => {
    if (typeof value !== 'function') throw invalidType(name, 'function', value);
  };
  internal.needObject = (value, name) => {
    if (value === null || typeof value !== 'object') throw invalidType(name, 'Object', value);
  };
  internal.needSignal = (signal, name) => {
    if (signal !== undefined && (signal === null || typeof signal !== 'object' || !('aborted' in signal))) {
      throw invalidType(name, 'AbortSignal', signal);
    }
  };
  // A text, or the bytes of a view.
  internal.dataOf = (data, name) => {
    if (typeof data === 'string') return data;
    if (!ArrayBuffer.isView(data)) throw invalidType(name, ['string', 'Buffer', 'TypedArray', 'DataView'], data);
    return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  };
  internal.keysOf = ownKeys;
  internal.parseJson = JSON.parse;

  // Modules of the prelude are evaluated when they are first asked for.
  const saved = { Map, Set, WeakMap, WeakSet, WeakRef, Promise };
  const builtins = { __proto__: null };
  internal.builtin = (name) => {
    if (!(name in builtins)) {
      const make = natives.builtin(name);
      if (make === undefined) return undefined;
      builtins[name] = {};
      builtins[name] = make(natives, internal, saved.Map, saved.Set, saved.WeakMap, saved.WeakSet, saved.WeakRef, saved.Promise);
    }
    return builtins[name];
  };
})
