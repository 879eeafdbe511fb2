// `fs`: the part that is bound. Order and threads are the loop's.
(function (natives, internal) {
  'use strict';
  const { needFunction } = internal;
  const pathOf = (path) => {
    if (typeof path !== 'string') throw internal.invalidType('path', ['string', 'Buffer', 'URL'], path);
    return path;
  };
  const last = (args) => {
    const callback = args[args.length - 1];
    needFunction(callback, 'cb');
    return callback;
  };
  const encodingOf = (options) => (typeof options === 'string' ? options : options?.encoding);
  const fs = {
    constants: { F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1 },
    writeSync: (fd, data) => natives.write(fd, typeof data === 'string' ? data : internal.builtin('util') && internal.text(data)),
    existsSync: (path) => typeof path === 'string' && natives.exists(path),
    mkdtempSync: (prefix) => natives.makeTemporary(pathOf(prefix)),
    rmSync: (path) => natives.removeAll(pathOf(path)),
    readFileSync: (path, options) => {
      const text = natives.readText(pathOf(path));
      return encodingOf(options) ? text : natives.encode(text);
    },
    mkdir: (path, ...args) => natives.makeFolder(pathOf(path), last(args)),
    unlink: (path, ...args) => natives.unlink(pathOf(path), last(args)),
    readFile: (path, ...args) => natives.readFile(pathOf(path), last(args), encodingOf(args.length > 1 ? args[0] : undefined) !== undefined),
    writeFile: (path, data, ...args) => natives.writeFile(pathOf(path), last(args), data),
  };
  return fs;
})
