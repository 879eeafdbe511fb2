// `dns`: the shape of its functions, with callbacks and with promises.
(function (natives, internal) {
  'use strict';
  const { invalidType, needFunction, notImplemented } = internal;
  const kinds = ['resolve4', 'resolve6', 'resolveCaa', 'resolveCname', 'resolveMx', 'resolveNaptr', 'resolveNs', 'resolvePtr', 'resolveSoa', 'resolveSrv', 'resolveTxt'];
  const types = { A: 'resolve4', AAAA: 'resolve6', CAA: 'resolveCaa', CNAME: 'resolveCname', MX: 'resolveMx', NAPTR: 'resolveNaptr', NS: 'resolveNs', PTR: 'resolvePtr', SOA: 'resolveSoa', SRV: 'resolveSrv', TXT: 'resolveTxt' };

  const lookupOptions = (options) => {
    if (typeof options === 'number') options = { family: options };
    if (options !== undefined && (options === null || typeof options !== 'object')) throw invalidType('options', ['integer', 'object'], options);
    for (const key of Object.keys(options ?? {})) {
      if (options[key] !== undefined && !['family', 'all', 'verbatim', 'order', 'hints'].includes(key)) throw notImplemented(`The option "${key}" of dns.lookup()`);
    }
    const { family = 0, all = false, verbatim, order, hints } = options ?? {};
    if (hints || verbatim === false || (order !== undefined && order !== 'verbatim')) throw notImplemented('An order or hints of dns.lookup()');
    const number = family === 'IPv4' ? 4 : family === 'IPv6' ? 6 : family;
    if (![0, 4, 6].includes(number)) throw internal.invalidValue('family', family, 'must be one of: 0, 4, 6');
    return { family: number, all };
  };
  const find = (host, { family, all }, callback) => {
    if (typeof host !== 'string') throw invalidType('hostname', 'string', host);
    natives.lookup(host, (error, addresses) => {
      if (error) {
        callback(error);
        return;
      }
      const found = addresses.map((address) => ({ address, family: natives.ipVersion(address) })).filter((it) => family === 0 || it.family === family);
      if (all) callback(null, found);
      else if (found.length > 0) callback(null, found[0].address, found[0].family);
      else callback(Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { errno: -3008, code: 'ENOTFOUND', syscall: 'getaddrinfo', hostname: host }));
    });
  };
  const lookup = (host, options, callback) => {
    if (typeof options === 'function') [options, callback] = [undefined, options];
    needFunction(callback, 'callback');
    find(host, lookupOptions(options), callback);
  };
  const nameOf = (name) => {
    if (typeof name !== 'string') throw invalidType('name', 'string', name);
    return name;
  };
  const ipOf = (ip) => {
    if (natives.ipVersion(`${ip}`) === 0) throw Object.assign(new Error(`getHostByAddr EINVAL ${ip}`), { errno: -22, code: 'EINVAL', syscall: 'getHostByAddr', hostname: ip });
    return ip;
  };
  const kindOf = (type) => {
    if (!Object.hasOwn(types, type)) throw internal.invalidValue('rrtype', type);
    return types[type];
  };
  class Servers {
    #native;
    constructor(options = {}) {
      internal.needObject(options, 'options');
      const { timeout = -1, tries = 4 } = options;
      this.#native = natives.resolver(timeout < 0 ? 5000 : timeout, tries);
      internal.hide(this, 'call', (...args) => this.#native(...args));
    }
    getServers() { return this.#native('getServers'); }
    setServers(servers) {
      if (!Array.isArray(servers)) throw invalidType('servers', 'Array', servers);
      this.#native('setServers', ...servers);
    }
  }
  class Resolver extends Servers {
    resolve(name, type, callback) { typeof type === 'function' ? this.resolve4(name, type) : this[kindOf(type)](name, callback); }
    reverse(ip, callback) {
      needFunction(callback, 'callback');
      // A file may have the answer at once.
      this.call('reverse', ipOf(ip), (...args) => process.nextTick(callback, ...args));
    }
  }
  class PromiseResolver extends Servers {
    resolve(name, type = 'A') { return this[kindOf(type)](name); }
    reverse(ip) { return new Promise((resolve, reject) => this.call('reverse', ipOf(ip), (error, found) => (error ? reject(error) : resolve(found)))); }
  }
  for (const kind of kinds) {
    const refuse = (options) => { if (options?.ttl) throw notImplemented(`The option "ttl" of dns.${kind}()`); };
    internal.hide(Resolver.prototype, kind, function (name, ...args) {
      const callback = args.pop();
      refuse(args[0]);
      needFunction(callback, 'callback');
      this.call(kind, nameOf(name), callback);
    });
    internal.hide(PromiseResolver.prototype, kind, function (name, options) {
      refuse(options);
      nameOf(name);
      return new Promise((resolve, reject) => this.call(kind, name, (error, found) => (error ? reject(error) : resolve(found))));
    });
  }
  // The resolver of the functions is made when the first of them is called.
  const plain = (Class) => {
    let made;
    const functions = {};
    for (const name of [...kinds, 'resolve', 'reverse', 'getServers', 'setServers']) functions[name] = (...args) => (made ??= new Class())[name](...args);
    return functions;
  };
  const promises = {
    Resolver: PromiseResolver, ...plain(PromiseResolver),
    lookup: (host, options) => new Promise((resolve, reject) => {
      const given = lookupOptions(options);
      find(host, given, (error, address, family) => (error ? reject(error) : resolve(given.all ? address : { address, family })));
    }),
  };
  return { Resolver, lookup, promises, ...plain(Resolver) };
})
