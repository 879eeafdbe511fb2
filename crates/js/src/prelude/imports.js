// ES modules: what an import names, its source, and the main program.
(function (natives, internal) {
  'use strict';
  const path = internal.builtin('path');
  const { coded } = internal;
  const urlOf = (file) => `file://${file.split('/').map(encodeURIComponent).join('/')}`;

  // A file is an ES module by its extension, or by the nearest package.
  const isModule = (file) => {
    if (file.endsWith('.mjs')) return true;
    if (!file.endsWith('.js')) return false;
    for (let folder = path.dirname(file); ; folder = path.dirname(folder)) {
      const manifest = path.join(folder, 'package.json');
      let found;
      try {
        found = natives.isFile(manifest);
      } catch {
        // A folder that the engine may not read has no package for it.
        return false;
      }
      if (found) return JSON.parse(natives.readText(manifest)).type === 'module';
      if (folder === path.dirname(folder)) return false;
    }
  };
  // What is no ES module gets one whose exports are those of an object.
  const objects = new internal.SafeMap();
  const kept = (key, load) => {
    objects.set(key, load);
    return key;
  };
  internal.importPath = (name, base) => {
    if (objects.has(name)) return name;
    const found = internal.findBuiltin(name);
    if (found !== undefined) return kept(name.startsWith('node:') || name.startsWith('rust:') ? name : `node:${name}`, () => found);
    if (name.startsWith('node:')) throw coded(Error, 'ERR_UNKNOWN_BUILTIN_MODULE', `No such built-in module: ${name}`);
    const file = name.startsWith('file://') ? decodeURIComponent(name.slice(7)) : name;
    const folder = path.dirname(base);
    if (file[0] === '.') {
      const at = internal.bareName(path.resolve(folder, file));
      const replaced = natives.rustModule(at);
      if (replaced !== undefined) return kept(at, () => replaced);
    }
    try {
      return internal.resolve(file, folder);
    } catch (error) {
      if (error.code !== 'MODULE_NOT_FOUND') throw error;
      throw coded(Error, 'ERR_MODULE_NOT_FOUND', `Cannot find ${/^[./]/.test(file) ? `module '${path.resolve(folder, file)}'` : `package '${file}'`} imported from ${base}`);
    }
  };
  const names = (value) => {
    if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return [];
    return Object.keys(value).filter((name) => /^[A-Za-z_$][\w$]*$/.test(name) && name !== 'default');
  };
  internal.importSource = (id) => {
    const load = objects.get(id);
    if (load !== undefined) {
      const list = names(load()).map((name, place) => `const v${place} = found.${name}; export { v${place} as ${name} };`);
      return `const found = import.meta.load(); export default found; ${list.join(' ')}`;
    }
    if (isModule(id)) return natives.readText(id).replace(/^#!/, '//');
    // The names of a CommonJS file are known when it has run, which is too late.
    return 'export default import.meta.load();';
  };
  internal.importMeta = (id) => {
    const load = objects.get(id);
    if (load !== undefined) return { load };
    if (isModule(id)) return { dirname: path.dirname(id), filename: id, url: urlOf(id) };
    return { load: () => internal.requireOf(id)(id) };
  };

  // A main module whose `await` never ends: Node's code for it is 13.
  const runMain = (file) => {
    const unsettled = () => { process.exitCode ??= 13; };
    process.on('exit', unsettled);
    internal.leaveMain = () => process.off('exit', unsettled);
    const main = internal.then(internal.resolved(), () => natives.import(file));
    internal.then(main, internal.leaveMain, internal.leaveMain);
    // A reaction of its own: the rejection of the program has no handler.
    return internal.then(main, (namespace) => namespace);
  };
  return { isModule, runMain };
})
