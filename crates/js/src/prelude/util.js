// `util`: inspect, format, promisify and what else programs need.
(function (natives, internal) {
  'use strict';
  const { apply, needFunction, invalidType } = internal;
  const custom = Symbol.for('nodejs.util.inspect.custom');
  const promisified = Symbol.for('nodejs.util.promisify.custom');

  const quote = (text) => {
    const mark = !text.includes("'") ? "'" : !text.includes('"') ? '"' : !text.includes('`') && !text.includes('${') ? '`' : "'";
    const escapes = { '\n': '\\n', '\t': '\\t', '\r': '\\r', '\b': '\\b', '\f': '\\f', '\v': '\\v', '\\': '\\\\' };
    const body = text.replace(/[\x00-\x1f\x7f-\x9f\\']/g, (c) => {
      if (c === "'") return mark === "'" ? "\\'" : c;
      return escapes[c] ?? `\\x${c.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`;
    });
    return `${mark}${body}${mark}`;
  };
  const primitive = (value) => {
    switch (typeof value) {
      case 'string': return quote(value);
      case 'number': return Object.is(value, -0) ? '-0' : `${value}`;
      case 'bigint': return `${value}n`;
      case 'symbol': return value.toString();
      default: return `${value}`;
    }
  };
  const nameOf = (value) => {
    for (let at = value; at !== null; at = Object.getPrototypeOf(at)) {
      const own = Object.getOwnPropertyDescriptor(at, 'constructor');
      if (own !== undefined && typeof own.value === 'function' && own.value.name !== '') return own.value.name;
    }
    return null;
  };
  const isIdentifier = /^[a-zA-Z_][a-zA-Z_0-9]*$/;

  function inspect(value, options, ...rest) {
    const given = typeof options === 'object' && options !== null ? options : { showHidden: options, depth: rest[0] };
    const settings = {
      depth: given.depth === undefined ? 2 : given.depth === null ? Infinity : given.depth,
      breakLength: given.breakLength ?? 80,
      compact: given.compact ?? 3, maxArrayLength: given.maxArrayLength ?? 100, maxStringLength: given.maxStringLength ?? 10000,
      sorted: given.sorted, showHidden: given.showHidden,
      seen: [], circular: new Map(), stylize: (text) => `${text}`, inspect,
    };
    return show(value, settings, 0, 0);
  }
  inspect.custom = custom;
  inspect.defaultOptions = {};

  const keysOf = (value) => {
    const keys = Object.keys(value);
    for (const symbol of Object.getOwnPropertySymbols(value)) {
      if (Object.prototype.propertyIsEnumerable.call(value, symbol)) keys.push(symbol);
    }
    return keys;
  };
  function property(value, key, s, level, indent) {
    const own = Object.getOwnPropertyDescriptor(value, key) ?? { value: value[key] };
    let text;
    if (own.value !== undefined || !(own.get || own.set)) text = show(own.value, s, level + 1, indent + 2);
    else text = own.get ? (own.set ? '[Getter/Setter]' : '[Getter]') : '[Setter]';
    const name = typeof key === 'symbol' ? key.toString() : isIdentifier.test(key) ? key : quote(key);
    return `${name}: ${text}`;
  }
  // Several short entries stand on one line.
  function join(entries, prefix, [open, close], s, level, indent, isList) {
    if (entries.length === 0) return `${prefix}${open}${close}`;
    let output = entries;
    if (isList && entries.length > 6 && s.compact >= 1) output = grouped(entries, s, indent);
    if (level - s.currentDepth < s.compact && output === entries) {
      const start = output.length + indent + open.length + prefix.length + 10;
      const total = output.reduce((sum, text) => sum + text.length, output.length + start);
      if (total <= s.breakLength && !prefix.includes('\n') && !output.some((text) => text.includes('\n'))) {
        return `${prefix}${open} ${output.join(', ')} ${close}`;
      }
    }
    const pad = `\n${' '.repeat(indent)}`;
    return `${prefix}${open}${pad}  ${output.join(`,${pad}  `)}${pad}${close}`;
  }
  function grouped(entries, s, indent) {
    let total = 0;
    let longest = 0;
    const lengths = entries.map((text) => {
      total += text.length + 2;
      longest = Math.max(longest, text.length);
      return text.length;
    });
    const width = longest + 2;
    if (width * 3 + indent >= s.breakLength || !(total / width > 5 || longest <= 6)) return entries;
    const bias = Math.sqrt(width - total / entries.length);
    const columns = Math.min(
      Math.round(Math.sqrt(2.5 * Math.max(bias - 3, 1) * entries.length) / Math.max(bias - 3, 1)),
      Math.floor((s.breakLength - indent) / width), s.compact * 4, 15);
    if (columns <= 1) return entries;
    const widths = [];
    for (let i = 0; i < columns; i++) {
      let most = 0;
      for (let j = i; j < entries.length; j += columns) most = Math.max(most, lengths[j]);
      widths.push(most + 2);
    }
    const isNumeric = entries.every((text) => /^-?[\d.]+n?$/.test(text));
    const lines = [];
    for (let i = 0; i < entries.length; i += columns) {
      const last = Math.min(i + columns, entries.length);
      let line = '';
      for (let j = i; j < last - 1; j++) {
        const cell = `${entries[j]}, `;
        line += isNumeric ? cell.padStart(widths[j - i]) : cell.padEnd(widths[j - i]);
      }
      line += isNumeric ? entries[last - 1].padStart(widths[last - 1 - i] - 2) : entries[last - 1];
      lines.push(line);
    }
    return lines;
  }
  function show(value, s, level, indent) {
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return primitive(value);
    const hook = value[custom];
    if (typeof hook === 'function' && hook !== inspect) {
      const shown = hook.call(value, s.depth - level, { ...s, depth: s.depth - level }, inspect);
      if (shown !== value) return typeof shown === 'string' ? shown.replaceAll('\n', `\n${' '.repeat(indent)}`) : show(shown, s, level, indent);
    }
    if (s.seen.includes(value)) {
      if (!s.circular.has(value)) s.circular.set(value, s.circular.size + 1);
      return `[Circular *${s.circular.get(value)}]`;
    }
    return showObject(value, s, level, indent);
  }
  function showObject(value, s, level, indent) {
    const name = nameOf(value);
    const tag = value[Symbol.toStringTag];
    const label = (fallback, size) => {
      const sized = size === undefined ? '' : `(${size})`;
      let text = name === null ? `[${fallback}${sized}: null prototype] ` : `${name}${sized} `;
      if (typeof tag === 'string' && tag !== '' && tag !== name) text += `[${tag}] `;
      return text;
    };
    let keys = keysOf(value);
    let prefix = '';
    let braces = ['{', '}'];
    let entries = [];
    let isList = false;
    let base = '';
    const deeper = (make) => {
      s.seen.push(value);
      s.currentDepth = level;
      try {
        return make();
      } finally {
        s.seen.pop();
      }
    };
    const limited = (list, make) => {
      const out = list.slice(0, s.maxArrayLength).map(make);
      const more = list.length - out.length;
      if (more > 0) out.push(`... ${more} more item${more > 1 ? 's' : ''}`);
      return out;
    };
    let list = null;
    if (Array.isArray(value)) {
      keys = keys.filter((key) => typeof key === 'symbol' || !/^(0|[1-9]\d*)$/.test(key));
      prefix = name === 'Array' ? '' : label('Array', value.length);
      braces = ['[', ']'];
      isList = true;
      list = () => limited([...Array(value.length).keys()], (i) => (i in value ? show(value[i], s, level + 1, indent + 2) : '<1 empty item>'));
    } else if (value instanceof Set) {
      prefix = label('Set', value.size);
      list = () => limited([...value], (it) => show(it, s, level + 1, indent + 2));
    } else if (value instanceof Map) {
      prefix = label('Map', value.size);
      list = () => limited([...value], ([k, v]) => `${show(k, s, level + 1, indent + 2)} => ${show(v, s, level + 1, indent + 2)}`);
    } else if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
      keys = keys.filter((key) => typeof key === 'symbol' || !/^(0|[1-9]\d*)$/.test(key));
      prefix = label(name, value.length);
      braces = ['[', ']'];
      isList = true;
      list = () => limited([...value], primitive);
    } else if (typeof value === 'function') {
      const kind = /^class\b/.test(Function.prototype.toString.call(value)) ? 'class' : name ?? 'Function';
      base = kind === 'class'
        ? `[class ${value.name || '(anonymous)'}${Object.getPrototypeOf(value)?.name ? ` extends ${Object.getPrototypeOf(value).name}` : ''}]`
        : `[${kind}${value.name ? `: ${value.name}` : ' (anonymous)'}]`;
    } else if (value instanceof RegExp) base = RegExp.prototype.toString.call(value);
    else if (value instanceof Date) base = Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
    else if (value instanceof Error) {
      // The stack is part of the text at any depth.
      base = errorText(value).replaceAll('\n', `\n${' '.repeat(indent)}`);
      keys = keys.filter((key) => key !== 'stack' && key !== 'message');
      const cause = Object.getOwnPropertyDescriptor(value, 'cause');
      if (cause && !cause.enumerable) keys.push('cause');
      const errors = Object.getOwnPropertyDescriptor(value, 'errors');
      if (errors && !errors.enumerable) keys.push('errors');
    } else if (value instanceof Promise) {
      prefix = label('Promise');
      list = () => {
        const [state, result] = natives.promiseState(value);
        return [state === 'pending' ? '<pending>' : state === 'rejected' ? `<rejected> ${show(result, s, level + 1, indent + 2)}` : show(result, s, level + 1, indent + 2)];
      };
    } else if (value instanceof WeakSet || value instanceof WeakMap) { prefix = label('Weak'); list = () => ['<items unknown>']; }
    else if (value instanceof Number || value instanceof String || value instanceof Boolean) {
      base = `[${name}: ${primitive(value.valueOf())}]`;
      if (value instanceof String) keys = keys.filter((key) => !/^\d+$/.test(key));
    } else if (value instanceof ArrayBuffer) { prefix = label('ArrayBuffer'); list = () => [`byteLength: ${value.byteLength}`]; }
    else {
      prefix = name === 'Object' && !(typeof tag === 'string' && tag !== '') ? '' : label('Object');
      if (Object.prototype.toString.call(value) === '[object Arguments]') { prefix = '[Arguments] '; braces = ['[', ']']; }
    }
    if (base !== '' && keys.length === 0) return base;
    const isEmpty = keys.length === 0 && (list === null || value.length === 0 || value.size === 0);
    if (level > s.depth && !isEmpty) return `[${(prefix.trim().replace(/\(\d+\)/, '') || (isList ? 'Array' : name ?? 'Object: null prototype')).replace(/^\[(.*)\]$/, '$1')}]`;
    return deeper(() => {
      if (list !== null) entries = list();
      const named = s.sorted ? keys.slice().sort() : keys;
      for (const key of named) {
        entries.push(key === 'cause' || key === 'errors' ? property(value, key, s, level, indent).replace(/^(\w+)/, base === '' ? '$1' : '[$1]') : property(value, key, s, level, indent));
      }
      const start = base === '' ? prefix : `${base} `;
      const at = s.circular.get(value);
      const mark = at === undefined ? '' : `<ref *${at}> `;
      return join(entries, `${mark}${start}`, braces, s, level, indent, isList);
    });
  }
  const errorText = (error) => {
    const name = error.name ?? 'Error';
    const head = error.message ? `${name}: ${error.message}` : `${name}`;
    // Frames of the prelude and of the engine are left out.
    const stack = typeof error.stack === 'string'
      ? error.stack.replace(/\n$/, '').split('\n').filter((line) => !/^\s*at .*(phaseloop:|\(native\))/.test(line)).join('\n')
      : '';
    if (stack === '') return `[${head}]`;
    return stack.startsWith(head) || stack.startsWith(name) ? stack : `${head}\n${stack}`;
  };
  internal.errorText = errorText;

  function format(...args) {
    let text = '';
    let at = 0;
    if (typeof args[0] === 'string') {
      at = 1;
      text = args[0].replace(/%([sdifjoOc%])/g, (whole, kind) => {
        if (kind === '%') return args.length > 1 ? '%' : whole;
        if (at >= args.length) return whole;
        const value = args[at++];
        switch (kind) {
          case 's':
            if (typeof value === 'string') return value;
            if (typeof value === 'bigint') return `${value}n`;
            if (typeof value === 'number') return primitive(value);
            if (typeof value === 'object' && value !== null) {
              return typeof value.toString === 'function' && nameOf(value) !== 'Object' && value.toString !== Object.prototype.toString && value.toString !== Error.prototype.toString
                ? String(value) : inspect(value, { depth: 0, compact: 3 });
            }
            return String(value);
          case 'd': return typeof value === 'bigint' ? `${value}n` : typeof value === 'symbol' ? 'NaN' : primitive(Number(value));
          case 'i': return typeof value === 'bigint' ? `${value}n` : primitive(parseInt(value, 10));
          case 'f': return primitive(parseFloat(value));
          case 'j': return JSON.stringify(value);
          case 'c': return '';
          default: return inspect(value, kind === 'o' ? { showHidden: true, depth: 4 } : {});
        }
      });
    }
    for (; at < args.length; at++) {
      const shown = typeof args[at] === 'string' ? args[at] : inspect(args[at]);
      text += at === 0 ? shown : ` ${shown}`;
    }
    return text;
  }

  function promisify(original) {
    needFunction(original, 'original');
    if (original[promisified]) {
      const f = original[promisified];
      needFunction(f, 'util.promisify.custom');
      return Object.defineProperty(f, promisified, { value: f, configurable: true });
    }
    function promised(...args) {
      return new Promise((resolve, reject) => {
        apply(original, this, [...args, (error, ...values) => (error ? reject(error) : resolve(values[0]))]);
      });
    }
    Object.setPrototypeOf(promised, Object.getPrototypeOf(original));
    Object.defineProperty(promised, promisified, { value: promised, configurable: true });
    return Object.defineProperties(promised, Object.getOwnPropertyDescriptors(original));
  }
  promisify.custom = promisified;
  function callbackify(original) {
    needFunction(original, 'original');
    return function (...args) {
      const callback = args.pop();
      needFunction(callback, 'last argument');
      internal.then(apply(original, this, args), (value) => process.nextTick(callback, null, value), (reason) => {
        let error = reason;
        if (!reason) {
          error = internal.coded(Error, 'ERR_FALSY_VALUE_REJECTION', 'Promise was rejected with falsy value');
          error.reason = reason;
        }
        process.nextTick(callback, error);
      });
    };
  }
  const deprecated = new Set();
  const deprecate = (f, message, code) => function (...args) {
    if (!(code && deprecated.has(code)) && !f.warned) {
      f.warned = true;
      if (code) deprecated.add(code);
      process.emitWarning(message, 'DeprecationWarning', code);
    }
    return apply(f, this, args);
  };
  const inherits = (constructor, parent) => {
    Object.defineProperty(constructor, 'super_', { value: parent, writable: true, configurable: true });
    Object.setPrototypeOf(constructor.prototype, parent.prototype);
  };
  class TextEncoder {
    get encoding() { return 'utf-8'; }
    encode(text = '') { return natives.encode(`${text}`); }
  }
  class TextDecoder {
    constructor(encoding = 'utf-8', options = undefined) {
      if (!/^\s*(unicode-1-1-utf-8|utf-?8)\s*$/i.test(encoding)) {
        throw internal.coded(RangeError, 'ERR_ENCODING_NOT_SUPPORTED', `The "${encoding}" encoding is not supported`);
      }
      if (options?.fatal || options?.ignoreBOM) throw internal.notImplemented('An option of TextDecoder');
      this.encoding = 'utf-8';
    }
    decode(bytes, options) {
      if (options?.stream) throw internal.notImplemented('TextDecoder.decode() of a stream');
      if (bytes === undefined) return '';
      const view = ArrayBuffer.isView(bytes) ? internal.dataOf(bytes, 'input') : bytes;
      return natives.decode(view, 'utf8').replace(/^\uFEFF/, '');
    }
  }
  const aborted = (signal, resource) => {
    internal.needSignal(signal, 'signal');
    if (signal === undefined) return Promise.reject(invalidType('signal', 'AbortSignal', signal));
    internal.needObject(resource, 'resource');
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  };
  // The first call looks at `NODE_DEBUG`.
  const debuglog = (section, callback) => {
    const name = `${section}`.toUpperCase();
    let isOn;
    const enabled = () => (isOn ??= natives.debugs(name));
    const print = (...args) => {
      if (enabled()) natives.write(2, `${name} ${process.pid}: ${format(...args)}\n`);
    };
    Object.defineProperty(print, 'enabled', { get: enabled, configurable: true, enumerable: true });
    let isFirst = typeof callback === 'function';
    const log = (...args) => {
      if (isFirst) {
        isFirst = false;
        callback(print);
      }
      print(...args);
    };
    return Object.defineProperty(log, 'enabled', { get: enabled, configurable: true, enumerable: true });
  };
  return {
    inspect, format, promisify, callbackify, deprecate, inherits, isDeepStrictEqual: (a, b) => internal.builtin('equal').deepStrict(a, b), TextEncoder, TextDecoder, aborted,
    formatWithOptions: (options, ...args) => format(...args),
    debuglog, debug: debuglog,
    stripVTControlCharacters: (text) => text.replace(/\u001b\[[0-9;]*[A-Za-z]/g, ''),
    toUSVString: (text) => `${text}`.toWellFormed(),
    get types() { return internal.builtin('util/types'); },
  };
})
