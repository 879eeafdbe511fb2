// ES modules: what an import names, its source, and the main program.
(function (natives, internal) {
  'use strict';
  const path = internal.builtin('path');
  // A script that asks for no file needs none.
  const packages = () => internal.builtin('packages');
  const { coded } = internal;
  const urlOf = (file) => `file://${encodeURI(file).replace(/[?#]/g, encodeURIComponent).replace(/%5B|%5D|%7C/g, decodeURIComponent)}`;
  const pathOf = (name) => (name.startsWith('file://') ? decodeURIComponent(name.slice(7)) : name);

  // A file is an ES module by its extension, by its package, or, if its package says nothing, by its
  // syntax.
  const isModule = (file, read = () => natives.readText(file)) => {
    if (file.endsWith('.mjs')) return true;
    if (!file.endsWith('.js')) return false;
    const scope = packages().scopeOf(path.dirname(file));
    const type = scope === undefined ? undefined : packages().manifestOf(scope).type;
    if (type === 'module' || type === 'commonjs') return type === 'module';
    if (file.includes('/node_modules/')) return false;
    const source = read();
    if (!/^[ \t]*(?:import\b[ \t]*['"{*\w$]|export\b[ \t]*[{*\w])/m.test(source)) return false;
    try {
      natives.compile(file, source);
      return false;
    } catch {
      return true;
    }
  };
  // What is no ES module gets one whose exports are those of an object.
  const objects = new internal.SafeMap();
  const kept = (key, load) => {
    objects.set(key, load);
    return key;
  };
  const inner = 'phaseloop:require:';
  // The engine must not link a module that it is evaluating. So each ES module has an entry: what it
  // imports, and whether its body has begun and ended. `running` has those whose body runs, and the
  // CommonJS files that an import runs. The last import of a module is one of `body`, which is evaluated
  // just before the module's own body.
  const body = 'phaseloop:body:';
  const modules = new internal.SafeMap();
  const running = new internal.SafeSet();
  const needed = (id, seen = new internal.SafeSet()) => {
    if (seen.has(id)) return seen;
    seen.add(id);
    for (const other of modules.get(id)?.needs ?? []) needed(other, seen);
    return seen;
  };
  const isEvaluating = (id) => modules.get(id)?.isEnded !== true && [...needed(id)].some((it) => running.has(it));
  const setEnded = (id) => {
    running.delete(id);
    modules.get(id).isEnded = true;
  };
  const findBuiltin = (name) => {
    const found = internal.findBuiltin(name);
    if (found === undefined) return undefined;
    return kept(name.startsWith('node:') || name.startsWith('rust:') ? name : `node:${name}`, () => found);
  };
  internal.importPath = (name, base, type, other) => {
    const id = pathFor(name, base, type, other);
    const importer = modules.get(base);
    // What is imported later is no part of the graph.
    if (importer?.hasBegun === false) importer.needs.push(id);
    return id;
  };
  const pathFor = (name, base, type, other) => {
    // An import of the functions below names a file that was found.
    if (objects.has(name) || base.startsWith(inner) || name.startsWith(body)) return name;
    const found = findBuiltin(name);
    if (found !== undefined) return found;
    if (name.startsWith('node:')) throw coded(Error, 'ERR_UNKNOWN_BUILTIN_MODULE', `No such built-in module: ${name}`);
    const scheme = /^([a-z][a-z\d+.-]*:)/i.exec(name)?.[1];
    if (scheme !== undefined && scheme !== 'file:') {
      throw coded(Error, 'ERR_UNSUPPORTED_ESM_URL_SCHEME', `Only URLs with a scheme in: file and data are supported by the default ESM loader. Received protocol '${scheme}'`);
    }
    const file = pathOf(name);
    if (file[0] === '.') {
      const at = internal.bareName(path.resolve(path.dirname(base), file));
      const replaced = natives.rustModule(at);
      if (replaced !== undefined) return kept(at, () => replaced);
    }
    const id = packages().importFile(file, base);
    if (internal.findBuiltin(id) !== undefined) return findBuiltin(id);
    const attribute = other === '' ? type !== '' && type !== 'json' && ['type', type] : JSON.parse(other);
    if (attribute) throw coded(TypeError, 'ERR_IMPORT_ATTRIBUTE_UNSUPPORTED', `Import attribute "${attribute[0]}" with value "${attribute[1]}" is not supported in ${urlOf(id)}`);
    if (id.endsWith('.json') && type === '') throw coded(TypeError, 'ERR_IMPORT_ATTRIBUTE_MISSING', `Module "${urlOf(id)}" needs an import attribute of "type: json"`);
    if (!id.endsWith('.json') && type === 'json') throw coded(TypeError, 'ERR_IMPORT_ATTRIBUTE_TYPE_INCOMPATIBLE', `Module "${urlOf(id)}" is not of type "json"`);
    return id;
  };
  const names = (value) => {
    if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return [];
    return Object.keys(value);
  };
  // The names that a CommonJS file shows, with those of the files that it exports as a whole.
  const namesOf = (file, seen = new internal.SafeSet()) => {
    if (seen.has(file) || file.endsWith('.json') || isModule(file)) return [];
    seen.add(file);
    const found = internal.builtin('cjs_names')(natives.readText(file));
    const all = found.names;
    for (const request of found.others) {
      try {
        const known = internal.findBuiltin(request);
        all.push(...(known === undefined ? namesOf(packages().resolve(request, path.dirname(file), file), seen) : names(known)));
      } catch {
        // The file itself reports it when it runs.
      }
    }
    return all;
  };
  const sourceOf = (list) => {
    const parts = [...new internal.SafeSet(list)].filter((name) => name !== 'default' && name.isWellFormed());
    const exports = parts.map((name, place) => `const v${place} = get(${JSON.stringify(name)}); export { v${place} as ${JSON.stringify(name)} };`);
    return `const found = import.meta.load(), get = (name) => { try { return found[name]; } catch {} }; export default found; ${exports.join(' ')}`;
  };
  internal.importSource = (id) => {
    const load = objects.get(id);
    if (load !== undefined) return sourceOf(names(load()));
    if (id.endsWith('.json')) return 'export default import.meta.load();';
    if (id.startsWith(body)) return 'import.meta.begin(); export const end = import.meta.end;';
    if (isModule(id)) {
      modules.set(id, { needs: [], hasBegun: false, isEnded: false });
      const source = natives.readText(id).replace(/^\uFEFF?#!/, '//');
      return `${source}\n;import { end as phaseloop$end } from ${JSON.stringify(body + id)}; phaseloop$end();`;
    }
    return `${sourceOf(namesOf(id).filter((name) => name !== 'module.exports'))} export { found as "module.exports" };`;
  };
  let main;
  internal.importMeta = (id) => {
    const load = objects.get(id);
    if (load !== undefined) return { load };
    if (id.startsWith(body)) {
      const file = id.slice(body.length);
      const begin = () => {
        modules.get(file).hasBegun = true;
        running.add(file);
      };
      return { begin, end: () => setEnded(file) };
    }
    if (!isModule(id)) {
      const run = () => {
        running.add(id);
        try {
          return internal.requireOf(id)(id);
        } finally {
          running.delete(id);
        }
      };
      return { load: run };
    }
    const resolve = (request) => {
      const name = `${request}`;
      if (/^(?!file:)[a-z][a-z\d+.-]*:/i.test(name)) return name;
      const found = findBuiltin(name);
      if (found !== undefined) return found;
      const file = packages().importFile(pathOf(name), id, false);
      return internal.findBuiltin(file) === undefined ? urlOf(file) : findBuiltin(file);
    };
    return { dirname: path.dirname(id), filename: id, main: id === main, resolve, url: urlOf(id) };
  };

  const asyncError = (file) => coded(Error, 'ERR_REQUIRE_ASYNC_MODULE', `require() cannot be used on an ESM graph with top-level await. Use import() instead. To see where the top-level await comes from, use --experimental-print-required-tla.\n  Requiring ${file} `);
  // Evaluates a module whose source calls `import.meta.take`, at once.
  let last = 0;
  const taken = (file, parent, sourceFor) => {
    let value;
    const name = `${inner}${last += 1}`;
    const promise = natives.evaluate(name, sourceFor(name), (found) => { value = found; }, () => {
      if (running.size > 0 && [...needed(file)].some(isEvaluating)) {
        throw coded(Error, 'ERR_REQUIRE_CYCLE_MODULE', `Cannot require() ES Module ${file} in a cycle. (from ${parent}) A cycle involving require(esm) is not allowed to maintain invariants mandated by the ECMAScript specification. Try making at least part of the dependency in the graph lazily loaded.`);
      }
    });
    internal.then(promise, () => {}, () => {});
    const [state, result] = natives.promiseState(promise);
    if (state === 'rejected') {
      for (const id of needed(file)) if (modules.get(id)?.hasBegun) setEnded(id);
      throw result;
    }
    if (state === 'pending') {
      modules.get(file).isAsync = true;
      throw asyncError(file);
    }
    return value;
  };
  // What `require` returns for an ES module.
  const requireModule = (file, parent) => {
    const id = JSON.stringify(file);
    if (modules.get(file)?.isAsync) throw asyncError(file);
    const found = taken(file, parent, () => `import * as found from ${id}; import.meta.take(found);`);
    if (Object.hasOwn(found, 'module.exports')) return found['module.exports'];
    if (!Object.hasOwn(found, 'default') || Object.hasOwn(found, '__esModule')) return found;
    // Compilers ask for this name before they use `default`.
    return taken(file, parent, (name) => `export * from ${id}; export { default } from ${id}; export const __esModule = true; import * as own from '${name}'; import.meta.take(own);`);
  };

  // A main module whose `await` never ends: Node's code for it is 13.
  const runMain = (file) => {
    main = file;
    const unsettled = () => { process.exitCode ??= 13; };
    process.on('exit', unsettled);
    internal.leaveMain = () => process.off('exit', unsettled);
    const imported = internal.then(internal.resolved(), () => natives.import(file));
    internal.then(imported, internal.leaveMain, internal.leaveMain);
    // A reaction of its own: the rejection of the program has no handler.
    return internal.then(imported, (namespace) => namespace);
  };
  return { isModule, requireModule, runMain };
})
