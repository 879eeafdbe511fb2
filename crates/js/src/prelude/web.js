// URLs, forms, headers and `fetch`: shapes of what Rust parses, sends and reads.
(function (natives, internal) {
  'use strict';
  const { coded, invalidType, hide, notImplemented } = internal;
  const inspect = Symbol.for('nodejs.util.inspect.custom');
  const shown = (name, value, options) => `${name} ${internal.builtin('util').inspect(value, options)}`;
  const iterate = (Class, entries) => {
    const all = {
      *entries() { yield* entries(this); },
      *keys() { for (const [name] of entries(this)) yield name; },
      *values() { for (const [, value] of entries(this)) yield value; },
      forEach(f, self) {
        internal.needFunction(f, 'callback');
        for (const [name, value] of entries(this)) f.call(self, value, name, this);
      },
    };
    all[Symbol.iterator] = all.entries;
    for (const key of Reflect.ownKeys(all)) Object.defineProperty(Class.prototype, key, { value: all[key], writable: true, configurable: true, enumerable: typeof key === 'string' });
  };
  // Pairs of a list of pairs, of an object, or of what can be iterated.
  const pairsOf = (init, what) => {
    if (init === null || (typeof init !== 'object' && typeof init !== 'function')) throw invalidType(what, ['Object'], init);
    if (typeof init[Symbol.iterator] !== 'function') return Reflect.ownKeys(init).filter((key) => typeof key === 'string' && Object.prototype.propertyIsEnumerable.call(init, key)).map((key) => [key, `${init[key]}`]);
    return [...init].map((pair) => {
      const [name, value, ...more] = [...pair];
      if (value === undefined || more.length) throw coded(TypeError, 'ERR_INVALID_TUPLE', 'Each query pair must be an iterable [name, value] tuple');
      return [`${name}`, `${value}`];
    });
  };
  const flat = (pairs) => pairs.flatMap((pair) => pair);
  const paired = (list) => {
    const pairs = [];
    for (let i = 0; i < list.length; i += 2) pairs.push([list[i], list[i + 1]]);
    return pairs;
  };

  let listOf;
  let paramsOf;
  let renew;
  class URLSearchParams {
    #list = [];
    #changed = () => {};
    static {
      listOf = (params) => params.#list;
      // Those of a URL, which is called with each change.
      paramsOf = (text, changed) => {
        const params = new URLSearchParams(text);
        params.#changed = changed;
        return params;
      };
      renew = (params, text) => { params.#list = paired(natives.formParse(text.replace(/^\?/, ''))); };
    }
    constructor(init = '') {
      if (init instanceof URLSearchParams) this.#list = listOf(init).map((pair) => [...pair]);
      else if (init !== null && typeof init === 'object') this.#list = pairsOf(init, 'init');
      else this.#list = paired(natives.formParse(`${init}`.replace(/^\?/, '')));
    }
    get size() { return this.#list.length; }
    append(name, value) { this.#list.push([`${name}`, `${value}`]); this.#changed(this); }
    delete(name, value) {
      this.#list = this.#list.filter(([key, it]) => key !== `${name}` || (value !== undefined && it !== `${value}`));
      this.#changed(this);
    }
    get(name) { return this.#list.find(([key]) => key === `${name}`)?.[1] ?? null; }
    getAll(name) { return this.#list.filter(([key]) => key === `${name}`).map(([, value]) => value); }
    has(name, value) { return this.#list.some(([key, it]) => key === `${name}` && (value === undefined || it === `${value}`)); }
    set(name, value) {
      const place = this.#list.findIndex(([key]) => key === `${name}`);
      if (place < 0) this.#list.push([`${name}`, `${value}`]);
      else {
        this.#list[place][1] = `${value}`;
        this.#list = this.#list.filter(([key], at) => at <= place || key !== `${name}`);
      }
      this.#changed(this);
    }
    sort() {
      this.#list.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
      this.#changed(this);
    }
    toString() { return natives.formText(flat(this.#list)); }
    get [Symbol.toStringTag]() { return 'URLSearchParams'; }
    [inspect]() {
      const { inspect: show } = internal.builtin('util');
      const list = this.#list.map(([name, value]) => `${show(name)} => ${show(value)}`);
      return `URLSearchParams {${list.length ? ` ${list.join(', ')} ` : ''}}`;
    }
  }
  iterate(URLSearchParams, (params) => listOf(params));

  const names = ['href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash'];
  let partOf;
  let change;
  class URL {
    #parts;
    #params;
    static {
      partOf = (url, place) => url.#parts[place];
      change = (url, name, value) => {
        url.#parts = natives.urlSet(url.#parts[0], name, value);
        if (url.#params !== undefined) renew(url.#params, url.#parts[9]);
      };
    }
    constructor(input, base) {
      if (arguments.length === 0) throw coded(TypeError, 'ERR_MISSING_ARGS', 'The "url" argument must be specified');
      this.#parts = natives.urlParse(`${input}`, base === undefined ? undefined : `${base}`);
      if (this.#parts !== undefined) return;
      const error = coded(TypeError, 'ERR_INVALID_URL', 'Invalid URL');
      error.input = `${input}`;
      if (base !== undefined) error.base = `${base}`;
      throw error;
    }
    static canParse(input, base) { return natives.urlParse(`${input}`, base === undefined ? undefined : `${base}`) !== undefined; }
    static parse(input, base) { return URL.canParse(input, base) ? new URL(input, base) : null; }
    get href() { return this.#parts[0]; }
    set href(value) {
      this.#parts = new URL(value).#parts;
      if (this.#params !== undefined) renew(this.#params, this.#parts[9]);
    }
    get searchParams() {
      this.#params ??= paramsOf(this.#parts[9], (params) => { this.#parts = natives.urlSet(this.#parts[0], 'search', `${params}`); });
      return this.#params;
    }
    toString() { return this.#parts[0]; }
    toJSON() { return this.#parts[0]; }
    get [Symbol.toStringTag]() { return 'URL'; }
    [inspect](depth, options) {
      const all = {};
      for (const name of names) all[name] = this[name];
      const { hash, ...rest } = all;
      return shown('URL', { ...rest, searchParams: this.searchParams, hash }, options);
    }
  }
  names.forEach((name, place) => {
    if (name === 'href') return;
    Object.defineProperty(URL.prototype, name, {
      get() { return partOf(this, place); },
      set: name === 'origin' ? undefined : function (value) { change(this, name, `${value}`); },
      enumerable: true, configurable: true,
    });
  });

  const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
  let mapOf;
  class Headers {
    #map = new internal.SafeMap();
    static {
      mapOf = (headers) => headers.#map;
    }
    constructor(init) {
      if (init === undefined) return;
      const pairs = init instanceof Headers ? [...init] : pairsOf(init, 'init');
      for (const [name, value] of pairs) this.append(name, value);
    }
    static #checked(method, name, value) {
      if (!token.test(`${name}`)) throw new TypeError(`Headers.${method}: ${name} is an invalid header name.`);
      const text = `${value}`.replace(/^[\t\r\n ]+|[\t\r\n ]+$/g, '');
      if (/[\0\r\n]|[^\0-\xff]/.test(text)) throw new TypeError(`Headers.${method}: ${value} is an invalid header value.`);
      return [`${name}`.toLowerCase(), text];
    }
    append(name, value) {
      const [key, text] = Headers.#checked('append', name, value);
      this.#map.set(key, [...this.#map.get(key) ?? [], text]);
    }
    set(name, value) {
      const [key, text] = Headers.#checked('set', name, value);
      this.#map.set(key, [text]);
    }
    delete(name) { this.#map.delete(`${name}`.toLowerCase()); }
    get(name) { return this.#map.get(`${name}`.toLowerCase())?.join(', ') ?? null; }
    has(name) { return this.#map.has(`${name}`.toLowerCase()); }
    getSetCookie() { return [...this.#map.get('set-cookie') ?? []]; }
    get [Symbol.toStringTag]() { return 'Headers'; }
    [inspect](depth, options) { return shown('Headers', Object.fromEntries(this), options); }
  }
  iterate(Headers, (headers) => [...mapOf(headers).keys()].sort().flatMap((name) => {
    const values = mapOf(headers).get(name);
    return name === 'set-cookie' ? values.map((value) => [name, value]) : [[name, values.join(', ')]];
  }));

  // The body of a response, piece by piece.
  class ReadableBody {
    #stream;
    #iterator;
    #locked = false;
    constructor(stream) { this.#stream = stream; }
    get locked() { return this.#locked; }
    getReader() {
      if (this.#locked) throw coded(TypeError, 'ERR_INVALID_STATE', 'Invalid state: ReadableStream is locked');
      this.#locked = true;
      const iterator = this.#begin();
      return {
        read: () => iterator.next(),
        cancel: (reason) => this.#leave(reason),
        releaseLock: () => { this.#locked = false; },
      };
    }
    cancel(reason) { return this.#locked ? Promise.reject(coded(TypeError, 'ERR_INVALID_STATE', 'Invalid state: ReadableStream is locked')) : this.#leave(reason); }
    #leave() {
      this.#stream.destroy();
      return Promise.resolve();
    }
    #begin() {
      this.#iterator ??= (async function* (stream) { for await (const chunk of stream) yield new Uint8Array(chunk); })(this.#stream);
      return this.#iterator;
    }
    [Symbol.asyncIterator]() {
      this.#locked = true;
      return this.#begin();
    }
    values() { return this[Symbol.asyncIterator](); }
    get [Symbol.toStringTag]() { return 'ReadableStream'; }
  }

  const kNative = Symbol('response');
  const settled = (start, value = (it) => it) => new Promise((resolve, reject) => start((error, found) => {
    if (error) {
      reject(error);
      return;
    }
    try {
      resolve(value(found));
    } catch (thrown) {
      reject(thrown);
    }
  }));
  // A response that a program makes: its body is a text or bytes.
  const made = (body, head) => {
    const bytes = body === undefined || body === null ? null : typeof body === 'string' || body instanceof URLSearchParams ? natives.encode(`${body}`) : internal.dataOf(body, 'body');
    let used = false;
    const take = (value) => (callback) => {
      if (used && bytes !== null) callback(new TypeError('Body is unusable: Body has already been read'));
      else {
        used = true;
        callback(null, value(bytes ?? new Uint8Array(0)));
      }
    };
    const operations = {
      head: () => head,
      text: take((it) => natives.decode(it, 'utf8')),
      bytes: take((it) => it.slice()),
      used: () => used && bytes !== null,
      has: () => bytes !== null,
      clone: () => made(bytes, head),
    };
    return (operation, ...args) => operations[operation](...args);
  };
  class Response {
    #head;
    #body;
    #headers;
    #stop;
    constructor(body, init = {}) {
      const isOwn = body?.[kNative] !== undefined;
      const { status = 200, statusText = '', headers } = init;
      if (!isOwn && !(status >= 200 && status <= 599)) throw new RangeError('init["status"] must be in the range of 200 to 599, inclusive.');
      const pairs = isOwn ? [] : flat([...new Headers(headers)]);
      const kind = typeof body === 'string' ? 'text/plain;charset=UTF-8' : body instanceof URLSearchParams ? 'application/x-www-form-urlencoded;charset=UTF-8' : undefined;
      if (kind !== undefined && !pairs.includes('content-type')) pairs.push('content-type', kind);
      hide(this, kNative, isOwn ? body[kNative] : made(body, [status, `${statusText}`, '', false, pairs]));
      this.#head = this[kNative]('head');
      this.#headers = new Headers(paired(this.#head[4]));
      hide(this, 'type', isOwn ? 'basic' : 'default');
      // Ends that the signal of the request is followed.
      this.#stop = body?.stop ?? (() => {});
      if (isOwn && !this[kNative]('has')) this.#stop();
    }
    static json(value, init = {}) {
      const headers = new Headers(init.headers);
      if (!headers.has('content-type')) headers.set('content-type', 'application/json');
      return new Response(JSON.stringify(value), { ...init, headers });
    }
    get status() { return this.#head[0]; }
    get statusText() { return this.#head[1]; }
    get url() { return this.#head[2]; }
    get redirected() { return this.#head[3]; }
    get ok() { return this.status >= 200 && this.status <= 299; }
    get headers() { return this.#headers; }
    get bodyUsed() { return this[kNative]('used'); }
    get body() {
      if (this.#body === undefined) {
        const { Readable } = internal.builtin('stream');
        const has = this[kNative]('has');
        if (has && this.type === 'default') throw notImplemented('The body of a response that a program has made');
        const stream = has ? internal.wrapStream(Readable, (object) => this[kNative]('body', object)) : null;
        if (has) stream.once('close', this.#stop);
        this.#body = has ? new ReadableBody(stream) : null;
      }
      return this.#body;
    }
    #read(operation, value) {
      return settled((callback) => this[kNative](operation, (...args) => {
        this.#stop();
        callback(...args);
      }), value);
    }
    text() { return this.#read('text'); }
    json() { return this.#read('text', internal.parseJson); }
    bytes() { return this.#read('bytes'); }
    arrayBuffer() { return this.#read('bytes', (bytes) => bytes.buffer); }
    clone() { return new Response({ [kNative]: this[kNative]('clone') }); }
    get [Symbol.toStringTag]() { return 'Response'; }
    [inspect](depth, options) {
      const { status, statusText, headers, bodyUsed, ok, redirected, type, url } = this;
      return shown('Response', { status, statusText, headers, bodyUsed, ok, redirected, type, url }, options);
    }
  }

  const bodyOf = (body) => {
    if (body === undefined || body === null || typeof body === 'string') return body;
    if (body instanceof URLSearchParams) return flat([...body]);
    if (body instanceof ArrayBuffer) return new Uint8Array(body);
    if (ArrayBuffer.isView(body)) return internal.dataOf(body, 'body');
    if (internal.nativeOf?.(body) !== undefined) return body;
    if (typeof body === 'object' && (body[Symbol.asyncIterator] || body[Symbol.iterator])) return internal.builtin('stream').Readable.from(body);
    return `${body}`;
  };
  const request = (input, init) => {
    if (typeof init !== 'object') throw invalidType('init', 'object', init);
    const { method, headers = {}, redirect, signal, body } = init;
    if (redirect !== undefined && !['follow', 'manual', 'error'].includes(redirect)) throw new TypeError(`Request constructor: ${redirect} is not an accepted type. Expected one of follow, manual, error.`);
    internal.builtin('stream');
    const [controller, stop] = internal.follow(signal);
    const options = { method: method === undefined ? undefined : `${method}`, headers: flat(headers instanceof Headers ? [...headers] : pairsOf(headers, 'headers')), redirect, controller, body: bodyOf(body) };
    return settled((callback) => natives.fetch(`${input}`, (error, native) => {
      if (error) stop();
      callback(error, native);
    }, options), (native) => new Response({ [kNative]: native, stop }));
  };
  const fetch = function fetch(input, init) {
    try {
      return request(input, init ?? {});
    } catch (error) {
      return Promise.reject(error);
    }
  };
  const fileURLToPath = (url) => {
    const { protocol, hostname, pathname } = typeof url === 'string' ? new URL(url) : url;
    if (protocol !== 'file:') throw coded(TypeError, 'ERR_INVALID_URL_SCHEME', 'The URL must be of scheme file');
    if (natives.platform === 'win32') return decodeURIComponent(pathname).replace(/^\//, '').replaceAll('/', '\\');
    if (hostname !== '') throw coded(TypeError, 'ERR_INVALID_FILE_URL_HOST', `File URL host must be "localhost" or empty on ${natives.platform}`);
    if (/%2f/i.test(pathname)) throw coded(TypeError, 'ERR_INVALID_FILE_URL_PATH', 'File URL path must not include encoded / characters');
    return decodeURIComponent(pathname);
  };
  const pathToFileURL = (file) => {
    const path = internal.builtin('path');
    const whole = path.resolve(file).replaceAll('\\', '/');
    const text = whole.replace(/[%\n\r\t?#\\]/g, (c) => encodeURIComponent(c));
    return new URL(`file://${natives.platform === 'win32' ? '/' : ''}${text}${/[\\/]$/.test(file) && !text.endsWith('/') ? '/' : ''}`);
  };
  return { URL, URLSearchParams, Headers, Response, fetch, fileURLToPath, pathToFileURL };
})
