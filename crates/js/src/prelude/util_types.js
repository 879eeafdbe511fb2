// `util/types`: what a value is, by what the engine keeps in it.
(function (natives, internal) {
  'use strict';
  const { apply } = internal;
  const holds = (f, ...args) => (value) => {
    try {
      apply(f, value, args);
      return true;
    } catch {
      return false;
    }
  };
  const getter = (prototype, key) => Object.getOwnPropertyDescriptor(prototype, key).get;
  const tagged = (...tags) => (value) => tags.includes(apply(Object.prototype.toString, value, []).slice(8, -1));
  const kindOf = getter(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag);
  const boxed = (Class) => (value) => typeof value === 'object' && value !== null && holds(Class.prototype.valueOf)(value);
  const types = {
    isDate: holds(Date.prototype.getTime), isMap: holds(getter(Map.prototype, 'size')), isSet: holds(getter(Set.prototype, 'size')),
    isWeakMap: holds(WeakMap.prototype.has, {}), isWeakSet: holds(WeakSet.prototype.has, {}),
    isPromise: (value) => value instanceof Promise, isRegExp: (value) => value instanceof RegExp && tagged('RegExp')(value),
    isNativeError: (value) => value instanceof Error, isProxy: (value) => natives.isProxy?.(value) ?? false, isExternal: () => false,
    isArrayBuffer: holds(getter(ArrayBuffer.prototype, 'byteLength')), isSharedArrayBuffer: holds(getter(SharedArrayBuffer.prototype, 'byteLength')),
    isDataView: (value) => ArrayBuffer.isView(value) && kindOf.call(value) === undefined, isArrayBufferView: ArrayBuffer.isView,
    isTypedArray: (value) => kindOf.call(value) !== undefined,
    isAsyncFunction: (value) => typeof value === 'function' && tagged('AsyncFunction', 'AsyncGeneratorFunction')(value),
    isGeneratorFunction: (value) => typeof value === 'function' && tagged('GeneratorFunction', 'AsyncGeneratorFunction')(value),
    isGeneratorObject: tagged('Generator', 'AsyncGenerator'), isMapIterator: tagged('Map Iterator'), isSetIterator: tagged('Set Iterator'),
    isArgumentsObject: (value) => typeof value === 'object' && value !== null && !(Symbol.toStringTag in value) && tagged('Arguments')(value),
    isModuleNamespaceObject: (value) => typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === null && tagged('Module')(value),
    isNumberObject: boxed(Number), isStringObject: boxed(String), isBooleanObject: boxed(Boolean), isSymbolObject: boxed(Symbol), isBigIntObject: boxed(BigInt),
  };
  types.isAnyArrayBuffer = (value) => types.isArrayBuffer(value) || types.isSharedArrayBuffer(value);
  types.isBoxedPrimitive = (value) => [Number, String, Boolean, Symbol, BigInt].some((Class) => boxed(Class)(value));
  for (const name of ['Int8Array', 'Uint8Array', 'Uint8ClampedArray', 'Int16Array', 'Uint16Array', 'Int32Array', 'Uint32Array', 'Float16Array', 'Float32Array', 'Float64Array', 'BigInt64Array', 'BigUint64Array']) {
    types[`is${name}`] = (value) => kindOf.call(value) === name;
  }
  return types;
})
