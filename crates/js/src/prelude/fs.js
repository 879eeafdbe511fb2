// `fs`: the part that is bound. Order and threads are the loop's. An option that is not bound is
// refused: to ignore it could destroy a file.
(function (natives, internal) {
  'use strict';
  const { invalidType, needFunction, notImplemented } = internal;
  const pathOf = (path) => {
    if (typeof path !== 'string') throw invalidType('path', ['string', 'Buffer', 'URL'], path);
    return path;
  };
  const last = (args) => {
    const callback = args[args.length - 1];
    needFunction(callback, 'cb');
    return callback;
  };
  const optionsOf = (name, options, ...known) => {
    if (options === undefined || options === null) return {};
    if (typeof options === 'string' && known.includes('encoding')) options = { encoding: options };
    if (typeof options !== 'object') throw invalidType('options', 'object', options);
    for (const key of Object.keys(options)) {
      if (options[key] !== undefined && !known.includes(key)) throw notImplemented(`The option "${key}" of fs.${name}()`);
    }
    return options;
  };
  // The option before the callback.
  const between = (args) => (args.length > 1 ? args[0] : undefined);
  const encodingOf = (name, options) => {
    const { encoding } = optionsOf(name, options, 'encoding');
    if (encoding === undefined || encoding === null || encoding === '' || encoding === 'buffer') return undefined;
    if (typeof encoding !== 'string' || !natives.isEncoding(encoding)) throw internal.invalidValue('encoding', encoding, 'is invalid encoding');
    return encoding;
  };
  const inUtf8 = (name, options) => {
    const encoding = encodingOf(name, options);
    if (encoding !== undefined && !/^utf-?8$/i.test(encoding)) throw notImplemented(`The encoding "${encoding}" of fs.${name}()`);
  };
  const decoded = (bytes, encoding) => (encoding === undefined ? internal.builtin('buffer') && internal.asBuffer(bytes) : natives.decode(bytes, encoding));
  const flag = (name, value) => {
    if (value !== undefined && typeof value !== 'boolean') throw invalidType(`options.${name}`, 'boolean', value);
    return value === true;
  };

  const writeSync = (fd, data, ...rest) => {
    if (typeof fd !== 'number') throw invalidType('fd', 'number', fd);
    const bytes = internal.dataOf(data, 'buffer');
    if (fd !== 1 && fd !== 2) throw notImplemented(`fs.writeSync() to the descriptor ${fd}, which is neither 1 nor 2,`);
    if (rest.some((value) => value !== undefined && value !== null)) throw notImplemented('An offset, length, position or encoding of fs.writeSync()');
    return natives.write(fd, bytes);
  };
  const rmSync = (path, options) => {
    pathOf(path);
    const given = optionsOf('rmSync', options, 'force', 'recursive');
    const [force, recursive] = [flag('force', given.force), flag('recursive', given.recursive)];
    let isFolder;
    try {
      isFolder = natives.isFolder(path);
    } catch (error) {
      if (force && error.code === 'ENOENT') return;
      throw error;
    }
    if (isFolder && !recursive) {
      const info = { code: 'EISDIR', message: 'is a directory', path, syscall: 'rm', errno: 21 };
      throw internal.systemError('ERR_FS_EISDIR', 'Path is a directory', info);
    }
    natives.remove(path, isFolder);
  };
  return {
    writeSync,
    rmSync,
    existsSync: (path) => typeof path === 'string' && natives.exists(path),
    mkdtempSync: (prefix, options) => {
      inUtf8('mkdtempSync', options);
      return natives.makeTemporary(pathOf(prefix));
    },
    readFileSync: (path, options) => {
      const encoding = encodingOf('readFileSync', options);
      return decoded(natives.readBytes(pathOf(path)), encoding);
    },
    mkdir: (path, ...args) => {
      const callback = last(args);
      optionsOf('mkdir', between(args));
      natives.makeFolder(pathOf(path), callback);
    },
    unlink: (path, callback) => natives.unlink(pathOf(path), last([callback])),
    readFile: (path, ...args) => {
      const callback = last(args);
      const encoding = encodingOf('readFile', between(args));
      natives.readFile(pathOf(path), encoding === undefined ? callback : (error, bytes) => {
        if (error) callback(error);
        else callback(null, decoded(bytes, encoding));
      });
    },
    writeFile: (path, data, ...args) => {
      const callback = last(args);
      inUtf8('writeFile', between(args));
      natives.writeFile(pathOf(path), callback, internal.dataOf(data, 'data'));
    },
  };
})
