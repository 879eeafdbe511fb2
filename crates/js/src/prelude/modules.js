// CommonJS: `require` of files and of the modules of the prelude. `console`, `global`.
(function (natives, internal) {
  'use strict';
  const path = internal.builtin('path');
  const { coded, invalidType } = internal;
  const cache = { __proto__: null };

  function Module(id, parent) {
    this.id = id;
    this.path = path.dirname(id);
    this.exports = {};
    this.filename = id;
    this.loaded = false;
    this.children = [];
    this.paths = [];
    if (parent) parent.children.push(this);
  }

  // What Rust has put in the place of a file, by its path without an extension or by its name.
  const bare = (file) => file.replace(/\.(c?js|json)$/, '');
  const builtin = (name) => {
    const found = natives.rustModule(name);
    if (found !== undefined) return found;
    const plain = name.startsWith('node:') ? name.slice(5) : name;
    if (!natives.allowed(plain)) return undefined;
    return plain === 'process' ? process : plain === 'console' ? console : internal.builtin(plain);
  };

  const resolve = (...args) => internal.builtin('packages').resolve(...args);

  const load = (file, parent) => {
    if (cache[file]) return cache[file].exports;
    let text;
    const read = () => (text ??= natives.readText(file));
    if (isModule(file, read)) {
      const exports = internal.builtin('imports').requireModule(file, parent?.filename);
      cache[file] = Object.assign(new Module(file, parent), { exports, loaded: true });
      return exports;
    }
    const module = new Module(file, parent);
    cache[file] = module;
    let done = false;
    try {
      const source = read();
      if (file.endsWith('.json')) {
        try {
          module.exports = JSON.parse(source.replace(/^\uFEFF/, ''));
        } catch (error) {
          error.message = `${file}: ${error.message}`;
          throw error;
        }
      } else {
        module.require = makeRequire(module);
        const compiled = natives.compile(file, source);
        compiled.call(module.exports, module.exports, module.require, module, file, path.dirname(file));
      }
      done = true;
    } finally {
      if (!done) delete cache[file];
    }
    module.loaded = true;
    return module.exports;
  };
  function makeRequire(module) {
    const require = (request) => {
      if (typeof request !== 'string') throw invalidType('id', 'string', request);
      if (request === '') throw internal.invalidValue('id', request, 'must be a non-empty string');
      const found = builtin(request);
      if (found !== undefined) return found;
      if (request.startsWith('node:')) throw coded(Error, 'ERR_UNKNOWN_BUILTIN_MODULE', `No such built-in module: ${request}`);
      if (request[0] === '.') {
        const replaced = natives.rustModule(bare(path.resolve(module.path, request)));
        if (replaced !== undefined) return replaced;
      }
      const file = resolve(request, module.path, module.filename);
      return builtin(file) ?? load(file, module);
    };
    require.resolve = (request) => (builtin(request) === undefined ? resolve(request, module.path, module.filename) : request);
    require.cache = cache;
    require.main = internal.mainModule;
    return require;
  }
  internal.moduleCache = cache;
  internal.requireOf = (file) => makeRequire(new Module(file));
  internal.findBuiltin = builtin;
  internal.bareName = bare;
  const { isModule } = internal.builtin('imports');
  internal.runMain = (given) => {
    const file = resolve(given, '/');
    if (isModule(file)) return internal.builtin('imports').runMain(file);
    const module = new Module(file);
    module.id = '.';
    internal.mainModule = module;
    process.mainModule = module;
    cache[file] = module;
    module.require = makeRequire(module);
    const compiled = natives.compile(file, natives.readText(file));
    compiled.call(module.exports, module.exports, module.require, module, file, path.dirname(file));
    module.loaded = true;
    return module.exports;
  };
  // The source of a worker, which is no file.
  internal.runSource = (source) => {
    const module = new Module(path.resolve('[worker eval]'));
    module.id = '[worker eval]';
    module.require = makeRequire(module);
    // The names are globals of a script there, which functions of the source see.
    const compiled = natives.compile('[worker eval]', source);
    compiled.call(globalThis, module.exports, module.require, module, '[worker eval]', '.');
  };
  internal.makeRequire = (folder) => makeRequire({ path: folder, children: [] });

  const util = () => internal.builtin('util');
  const print = (fd) => (...args) => natives.write(fd, `${indent}${util().format(...args).replaceAll('\n', `\n${indent}`)}\n`);
  let indent = '';
  const counts = new Map();
  const times = new Map();
  const console = {
    log: print(1), info: print(1), debug: print(1), error: print(2), warn: print(2),
    trace: (...args) => print(2)(`Trace: ${util().format(...args)}`),
    dir: (value, options) => print(1)(util().inspect(value, options)),
    assert: (condition, ...args) => { if (!condition) print(2)('Assertion failed', ...args); },
    group: (...args) => { if (args.length) console.log(...args); indent += '  '; },
    groupEnd: () => { indent = indent.slice(2); },
    count: (label = 'default') => { counts.set(label, (counts.get(label) ?? 0) + 1); console.log(`${label}: ${counts.get(label)}`); },
    countReset: (label = 'default') => { counts.delete(label); },
    time: (label = 'default') => { times.set(label, natives.hrtime()); },
    timeEnd: (label = 'default') => { console.log(`${label}: ${Number(natives.hrtime() - times.get(label)) / 1e6}ms`); times.delete(label); },
    timeLog: (label = 'default', ...args) => { console.log(`${label}: ${Number(natives.hrtime() - times.get(label)) / 1e6}ms`, ...args); },
    table: (value) => console.log(value),
  };
  internal.hide(globalThis, 'console', console);
  internal.hide(globalThis, 'global', globalThis);
  for (const [name, module, key = name] of [['TextEncoder', 'util'], ['TextDecoder', 'util'], ['Buffer', 'buffer'], ['atob', 'buffer'], ['btoa', 'buffer'],
    ['MessageChannel', 'ports'], ['MessagePort', 'ports'], ['structuredClone', 'ports'], ['BroadcastChannel', 'worker_threads'],
    ...(natives.fetch ? [['URL', 'web'], ['URLSearchParams', 'web'], ['Headers', 'web'], ['Response', 'web'], ['fetch', 'web']] : []), ['performance', 'perf_hooks'], ...(natives.random ? [['crypto', 'crypto', 'webcrypto']] : []), ['PerformanceObserver', 'perf_hooks']]) {
    Object.defineProperty(globalThis, name, {
      get: () => ((['perf_hooks', 'worker_threads'].includes(module) && !natives.allowed(module)) || (name === 'fetch' && !natives.allowed('http')) ? undefined : internal.builtin(module)?.[key]),
      set: (value) => internal.hide(globalThis, name, value),
      configurable: true,
    });
  }
  return { Module };
})
