// `module`: `require` for ES modules, and the names of what is built in.
(function (natives, internal) {
  'use strict';
  const { Module } = internal.builtin('modules');
  const path = internal.builtin('path');
  Module.Module = Module;
  Module.builtinModules = natives.moduleNames();
  Module.isBuiltin = (name) => typeof name === 'string' && natives.allowed(name.startsWith('node:') ? name.slice(5) : name);
  Module.createRequire = (from) => {
    let file = from;
    if (from !== null && typeof from === 'object' && typeof from.href === 'string') file = from.href;
    if (typeof file === 'string' && file.startsWith('file://')) file = decodeURIComponent(file.slice(7));
    if (typeof file !== 'string' || !path.isAbsolute(file)) {
      throw internal.invalidValue('filename', from, 'must be a file URL object, file URL string, or absolute path string');
    }
    return internal.requireOf(file.endsWith('/') ? `${file}noop.js` : file);
  };
  // The modules here are objects whose exports do not change.
  Module.syncBuiltinESMExports = () => {};
  Module._cache = internal.moduleCache;
  Module._resolveFilename = (request, parent) => internal.requireOf(parent?.filename ?? path.resolve('noop.js')).resolve(request);
  return Module;
})
