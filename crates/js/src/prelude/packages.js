// Files and packages: what a request of `require` and an import name.
(function (natives, internal) {
  'use strict';
  const path = internal.builtin('path');
  const { coded } = internal;
  const manifests = new Map();

  // The package.json of a folder; null if there is none.
  const manifestOf = (folder) => {
    if (manifests.has(folder)) return manifests.get(folder);
    const file = path.join(folder, 'package.json');
    let found = null;
    try {
      if (natives.isFile(file)) found = natives.readText(file);
    } catch {
      // A folder that the engine may not read has no package for it.
    }
    if (found !== null) {
      try {
        found = JSON.parse(found);
      } catch (error) {
        throw coded(Error, 'ERR_INVALID_PACKAGE_CONFIG', `Invalid package config ${file}. ${error.message}`);
      }
    }
    manifests.set(folder, found);
    return found;
  };
  // The folder of the package that a file belongs to.
  const scopeOf = (folder) => {
    for (;; folder = path.dirname(folder)) {
      if (path.basename(folder) === 'node_modules') return undefined;
      if (manifestOf(folder) !== null) return folder;
      if (folder === path.dirname(folder)) return undefined;
    }
  };

  const asFile = (file) => {
    for (const candidate of [file, `${file}.js`, `${file}.json`, `${file}.cjs`]) {
      if (natives.isFile(candidate)) return natives.realPath(candidate);
    }
    return undefined;
  };
  const asFolder = (folder) => {
    const main = manifestOf(folder)?.main;
    if (typeof main === 'string') {
      const at = path.join(folder, main);
      const found = asFile(at) ?? asFile(path.join(at, 'index'));
      if (found) return found;
    }
    return asFile(path.join(folder, 'index'));
  };
  const exact = (file) => (natives.isFile(file) ? natives.realPath(file) : undefined);

  // A way of asking: its conditions, and the file that is named in errors.
  const shared = ['node', 'module-sync', 'default'];
  const requiring = { conditions: new Set(['require', ...shared]) };
  const importing = { conditions: new Set(['import', ...shared]) };
  const from = (base) => (base === undefined ? '' : ` imported from ${base}`);

  const isBad = (part) => part.split(/[/\\]/).some((name) => name === '.' || name === '..' || /^node_modules$/i.test(name));
  // What the value of an entry names: a path, `null`, or nothing for these conditions. In `imports` it
  // may be another package.
  const targetOf = (way, folder, value, key, match, isImport, base) => {
    const invalid = () => coded(Error, 'ERR_INVALID_PACKAGE_TARGET',
      `Invalid "${isImport ? 'imports' : 'exports'}" target ${JSON.stringify(value)} defined ${key === '.' ? '' : `for '${key}' `}in the package config ${path.join(folder, 'package.json')}${from(base)}` +
      `${!isImport && typeof value === 'string' && value !== '' && !value.startsWith('./') ? '; targets must start with "./"' : ''}`);
    if (typeof value === 'string') {
      const full = match === undefined ? value : value.replaceAll('*', () => match);
      if (!value.startsWith('./')) {
        if (isImport && !/^(?:(?:\.\.?)?\/|[a-z][a-z\d+.-]*:)/i.test(value)) return { request: full };
        throw invalid();
      }
      if (isBad(value.slice(2))) throw invalid();
      if (match !== undefined && isBad(match)) {
        throw coded(TypeError, 'ERR_INVALID_MODULE_SPECIFIER', `Invalid module "${key.replace('*', match)}" request is not a valid match in pattern "${key}" for the "${isImport ? 'imports' : 'exports'}" resolution of ${path.join(folder, 'package.json')}${from(base)}`);
      }
      return path.join(folder, full);
    }
    if (Array.isArray(value)) {
      let last = null;
      for (const item of value) {
        try {
          const found = targetOf(way, folder, item, key, match, isImport, base);
          if (found !== undefined && found !== null) return found;
          last = found;
        } catch (error) {
          if (error.code !== 'ERR_INVALID_PACKAGE_TARGET') throw error;
          last = error;
        }
      }
      if (last instanceof Error) throw last;
      return last;
    }
    if (value === null) return null;
    if (typeof value !== 'object') throw invalid();
    for (const condition of Object.keys(value)) {
      if (!way.conditions.has(condition)) continue;
      const found = targetOf(way, folder, value[condition], key, match, isImport, base);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  // The entry for a name: itself, else the pattern with the longest beginning.
  const entryOf = (entries, name) => {
    if (Object.hasOwn(entries, name) && !name.includes('*')) return [name];
    let best;
    for (const key of Object.keys(entries)) {
      const star = key.indexOf('*');
      if (star === -1 || star !== key.lastIndexOf('*')) continue;
      const [start, end] = [key.slice(0, star), key.slice(star + 1)];
      if (!name.startsWith(start) || name === start || name.length < key.length || !name.endsWith(end)) continue;
      const isBetter = best === undefined || star > best[2] || (star === best[2] && key.length > best[0].length);
      if (isBetter) best = [key, name.slice(star, name.length - end.length), star];
    }
    return best;
  };
  const exported = (way, folder, subpath, base) => {
    const { exports } = manifestOf(folder);
    const keys = exports !== null && typeof exports === 'object' && !Array.isArray(exports) ? Object.keys(exports) : [];
    const dots = keys.filter((key) => key[0] === '.').length;
    if (dots > 0 && dots < keys.length) {
      throw coded(Error, 'ERR_INVALID_PACKAGE_CONFIG', `Invalid package config ${path.join(folder, 'package.json')}. "exports" cannot contain some keys starting with '.' and some not. ` +
        'The exports object must either be an object of package subpath keys or an object of main entry condition name keys only.');
    }
    const entries = dots > 0 ? exports : { '.': exports };
    const entry = entryOf(entries, subpath);
    const found = entry && targetOf(way, folder, entries[entry[0]], entry[0], entry[1], false, base);
    if (typeof found === 'string') return found;
    const file = path.join(folder, 'package.json');
    throw coded(Error, 'ERR_PACKAGE_PATH_NOT_EXPORTED', `${subpath === '.' ? `No "exports" main defined in ${file}` : `Package subpath '${subpath}' is not defined by "exports" in ${file}`}${from(base)}`);
  };
  // A name with `#`: a path, or the request for another package.
  const imported = (way, request, folder, base) => {
    const scope = scopeOf(folder);
    const entries = scope === undefined ? undefined : manifestOf(scope).imports;
    const entry = request === '#' || entries === undefined || entries === null ? undefined : entryOf(entries, request);
    const found = entry && targetOf(way, scope, entries[entry[0]], entry[0], entry[1], true, base);
    if (found !== undefined && found !== null) return [found, scope];
    throw coded(TypeError, 'ERR_PACKAGE_IMPORT_NOT_DEFINED', `Package import specifier "${request}" is not defined${scope === undefined ? '' : ` in package ${path.join(scope, 'package.json')}`}${from(base)}`);
  };
  // The place of a package: its path by `exports`, or its folder and the rest of the request.
  const packaged = (way, request, folder, base) => {
    const [, name, rest] = /^((?:@[^/\\%]+\/)?[^./\\%@][^/\\%]*)(.*)$/.exec(request) ?? [];
    if (name === undefined) return {};
    const scope = scopeOf(folder);
    if (scope !== undefined && manifestOf(scope).name === name && (manifestOf(scope).exports ?? null) !== null) {
      return { file: exported(way, scope, `.${rest}`, base) };
    }
    for (; ; folder = path.dirname(folder)) {
      if (path.basename(folder) !== 'node_modules') {
        const at = path.join(folder, 'node_modules', name);
        if ((manifestOf(at)?.exports ?? null) !== null) return { file: exported(way, at, `.${rest}`, way === importing ? base : undefined) };
        const found = way === requiring || rest === '' ? asFile(`${at}${rest}`) ?? asFolder(`${at}${rest}`) : exact(`${at}${rest}`);
        if (found !== undefined) return { found };
        // An import stops at the first folder of the name.
        if (way === importing && manifestOf(at) !== null) return { file: `${at}${rest}` };
      }
      if (folder === path.dirname(folder)) return {};
    }
  };

  const notFound = (what) => {
    const error = new Error(`Cannot find module '${what}'`);
    error.code = 'MODULE_NOT_FOUND';
    error.requireStack = [];
    return error;
  };
  // The file that `require` gets for a request of a file in a folder.
  const resolve = (request, folder, base) => {
    let found;
    if (/^\.{0,2}\//.test(request) || request === '.' || request === '..') {
      const at = path.resolve(folder, request);
      found = (/(?:^|\/)\.{0,2}$/.test(request) ? undefined : asFile(at)) ?? asFolder(at);
    } else if (request[0] === '#' && scopeOf(folder) !== undefined && (manifestOf(scopeOf(folder)).imports ?? null) !== null) {
      const [target, scope] = imported(requiring, request, folder, base);
      if (typeof target !== 'string') return internal.findBuiltin(target.request) === undefined ? resolve(target.request, scope, base) : target.request;
      found = exact(target);
      if (found === undefined) throw notFound(target);
    } else {
      const place = packaged(requiring, request, folder, base);
      found = place.found ?? (place.file && exact(place.file));
      if (found === undefined && place.file !== undefined) throw notFound(place.file);
    }
    if (found === undefined) throw notFound(request);
    return found;
  };
  // The file that an import names: no extension is tried.
  const missing = (what, base) => coded(Error, 'ERR_MODULE_NOT_FOUND', `Cannot find ${what} imported from ${base}`);
  const importFile = (request, base, isAsked = true) => {
    const folder = path.dirname(base);
    let file;
    if (/^\.{0,2}\//.test(request) || request === '.' || request === '..') {
      file = path.resolve(folder, request);
      if (request.endsWith('/') && file !== '/') file += '/';
    } else if (request[0] === '#') {
      const [target, scope] = imported(importing, request, folder, base);
      if (typeof target !== 'string') {
        return internal.findBuiltin(target.request) === undefined ? importFile(target.request, path.join(scope, 'package.json'), isAsked) : target.request;
      }
      file = target;
    } else {
      const place = packaged(importing, request, folder, base);
      if (place.found !== undefined) return place.found;
      if (place.file === undefined) throw missing(`package '${request}'`, base);
      ({ file } = place);
    }
    if (!isAsked) return file;
    const found = exact(file);
    if (found !== undefined) return found;
    if (natives.exists(file) && natives.isFolder(file)) throw coded(Error, 'ERR_UNSUPPORTED_DIR_IMPORT', `Directory import '${file}' is not supported resolving ES modules imported from ${base}`);
    throw missing(`module '${file}'`, base);
  };
  return { importFile, manifestOf, resolve, scopeOf };
})
