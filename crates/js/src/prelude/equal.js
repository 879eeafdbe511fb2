// The comparisons of `util.isDeepStrictEqual` and `assert`.
(function (natives, internal) {
  'use strict';
  const tagOf = (value) => internal.apply(Object.prototype.toString, value, []);
  const keysOf = (value, isStrict, isList) => {
    const keys = Object.keys(value).filter((key) => !isList || !/^(?:0|[1-9]\d*)$/.test(key));
    if (!isStrict) return keys;
    return keys.concat(Object.getOwnPropertySymbols(value).filter((key) => Object.getOwnPropertyDescriptor(value, key).enumerable));
  };
  const bytesOf = (value) => (value instanceof ArrayBuffer ? new Uint8Array(value) : new Uint8Array(value.buffer, value.byteOffset, value.byteLength));

  const equal = (a, b, isStrict, seen) => {
    if (a === b) return a !== 0 || !isStrict || Object.is(a, b);
    const isObject = (value) => value !== null && typeof value === 'object';
    if (!isObject(a) || !isObject(b)) {
      if (isStrict) return Object.is(a, b);
      if (isObject(a) || isObject(b) || typeof a === 'function' || typeof b === 'function') return false;
      return a == b || (Number.isNaN(a) && Number.isNaN(b));
    }
    if (isStrict && Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false;
    if (tagOf(a) !== tagOf(b) || Array.isArray(a) !== Array.isArray(b)) return false;
    if (a instanceof Error !== b instanceof Error) return false;
    let isList = false;
    if (Array.isArray(a)) {
      if (a.length !== b.length) return false;
    } else if (a instanceof Date && b instanceof Date) {
      if (!Object.is(a.getTime(), b.getTime())) return false;
    } else if (a instanceof RegExp && b instanceof RegExp) {
      if (`${a}` !== `${b}` || a.lastIndex !== b.lastIndex) return false;
    } else if (a instanceof Error && b instanceof Error) {
      if (a.message !== b.message || a.name !== b.name) return false;
      for (const key of ['cause', 'errors']) {
        if (Object.hasOwn(a, key) !== Object.hasOwn(b, key) || !compare(a[key], b[key], isStrict, seen)) return false;
      }
    } else if (ArrayBuffer.isView(a) || a instanceof ArrayBuffer) {
      const [one, two] = [bytesOf(a), bytesOf(b)];
      if (one.length !== two.length) return false;
      isList = true;
      const isFloat = !isStrict && /^\[object Float/.test(tagOf(a));
      for (let i = 0; i < (isFloat ? a : one).length; i++) {
        if (isFloat ? a[i] !== b[i] : one[i] !== two[i]) return false;
      }
    } else if ([Number, String, Boolean, Symbol, BigInt].some((Class) => a instanceof Class)) {
      if (!Object.is(a.valueOf(), b.valueOf())) return false;
      isList = a instanceof String;
    } else if (a instanceof WeakMap || a instanceof WeakSet || a instanceof Promise || a instanceof WeakRef) {
      return false;
    }
    const keys = keysOf(a, isStrict, isList);
    if (keys.length !== keysOf(b, isStrict, isList).length || !keys.every((key) => Object.prototype.propertyIsEnumerable.call(b, key))) return false;
    if (seen.has(a)) return seen.get(a) === b;
    seen.set(a, b);
    const isSame = items(a, b, isStrict, seen) && keys.every((key) => compare(a[key], b[key], isStrict, seen));
    seen.delete(a);
    return isSame;
  };
  const compare = (a, b, isStrict, seen) => equal(a, b, isStrict, seen);
  // Sets and maps have no order: each item of one needs a partner of its own in the other.
  const items = (a, b, isStrict, seen) => {
    const isMap = a instanceof Map;
    if (!isMap && !(a instanceof Set)) return true;
    if (a.size !== b.size) return false;
    const left = [...b.keys()];
    for (const key of a.keys()) {
      let place = left.findIndex((other) => Object.is(key, other) && (!isMap || compare(a.get(key), b.get(other), isStrict, seen)));
      if (place === -1) place = left.findIndex((other) => compare(key, other, isStrict, seen) && (!isMap || compare(a.get(key), b.get(other), isStrict, seen)));
      if (place === -1) return false;
      left.splice(place, 1);
    }
    return true;
  };
  return {
    deepStrict: (a, b) => equal(a, b, true, new Map()),
    deepLoose: (a, b) => equal(a, b, false, new Map()),
  };
})
