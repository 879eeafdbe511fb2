// `fs`: the shape of its functions. Order and threads are the loop's. An option that is not bound is
// refused: to ignore it could destroy a file.
(function (natives, internal) {
  'use strict';
  const { invalidType, needFunction, notImplemented } = internal;
  const { Buffer } = internal.builtin('buffer');
  const constants = {
    F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1, COPYFILE_EXCL: 1, S_IFMT: 0o170000, S_IFREG: 0o100000, S_IFDIR: 0o40000,
    S_IFCHR: 0o20000, S_IFBLK: 0o60000, S_IFIFO: 0o10000, S_IFLNK: 0o120000, S_IFSOCK: 0o140000,
    ...(natives.platform === 'linux' ? { O_RDONLY: 0, O_WRONLY: 1, O_RDWR: 2, O_CREAT: 0o100, O_EXCL: 0o200, O_TRUNC: 0o1000, O_APPEND: 0o2000, O_NONBLOCK: 0o4000 } : {}),
  };
  const pathOf = (path, name = 'path') => {
    if (path instanceof Uint8Array) path = natives.decode(path, 'utf8');
    else if (path !== null && typeof path === 'object' && path.protocol === 'file:') path = internal.builtin('web').fileURLToPath(path);
    if (typeof path !== 'string') throw invalidType(name, ['string', 'Buffer', 'URL'], path);
    if (path.includes('\0')) throw internal.invalidValue(name, path, 'must be a string, Uint8Array, or URL without null bytes');
    return path;
  };
  const optionsOf = (name, options, ...known) => {
    if (options === undefined || options === null) return {};
    if (typeof options === 'string' && known.includes('encoding')) options = { encoding: options };
    if (typeof options !== 'object') throw invalidType('options', 'object', options);
    for (const key of Object.keys(options)) {
      if (options[key] !== undefined && !known.includes(key)) throw notImplemented(`The option "${key}" of fs.${name}()`);
    }
    internal.needSignal(options.signal, 'options.signal');
    return options;
  };
  const encodingOf = ({ encoding }) => {
    if (encoding === undefined || encoding === null || encoding === '' || encoding === 'buffer') return undefined;
    if (typeof encoding !== 'string' || !natives.isEncoding(encoding)) throw internal.invalidValue('encoding', encoding, 'is invalid encoding');
    return encoding;
  };
  const inUtf8 = (name, options) => {
    const encoding = encodingOf(options);
    if (encoding !== undefined && !/^utf-?8$/i.test(encoding)) throw notImplemented(`The encoding "${encoding}" of fs.${name}()`);
    return options;
  };
  const decoded = (bytes, encoding) => (encoding === undefined ? internal.asBuffer(bytes) : natives.decode(bytes, encoding));
  const flag = (name, value) => {
    if (value !== undefined && typeof value !== 'boolean') throw invalidType(`options.${name}`, 'boolean', value);
    return value === true;
  };
  const modeOf = (value, usual, name = 'mode') => {
    if (value === undefined || value === null) return usual;
    const mode = typeof value === 'string' ? Number.parseInt(value, 8) : value;
    if (typeof mode !== 'number') throw invalidType(name, 'number', value);
    if (!Number.isInteger(mode)) throw internal.outOfRange(name, 'an integer', value);
    if (mode < 0 || mode > 0xffffffff) throw internal.outOfRange(name, '>= 0 && <= 4294967295', value);
    return mode;
  };
  const lengthOf = (value) => {
    if (value === undefined || value === null) return 0;
    if (typeof value !== 'number') throw invalidType('len', 'number', value);
    if (!Number.isInteger(value)) throw internal.outOfRange('len', 'an integer', value);
    return Math.max(0, value);
  };
  const flagsOf = (value, usual) => {
    if (value === undefined || value === null) return usual;
    if (typeof value !== 'string') throw notImplemented('A number as flags of a file');
    return value;
  };
  const secondsOf = (value, name) => {
    const time = value instanceof Date ? value.getTime() / 1000 : Number(value);
    if (!Number.isFinite(time)) throw invalidType(name, ['number', 'string', 'Date', 'Time in seconds'], value);
    return time;
  };
  const bytesOf = (data, options, name = 'data') => {
    if (typeof data === 'string') return Buffer.from(data, encodingOf(options) ?? 'utf8');
    return internal.dataOf(data, name);
  };

  class Stats {
    constructor(dev, mode, nlink, uid, gid, rdev, blksize, ino, size, blocks, atimeMs, mtimeMs, ctimeMs, birthtimeMs) {
      Object.assign(this, { dev, mode, nlink, uid, gid, rdev, blksize, ino, size, blocks, atimeMs, mtimeMs, ctimeMs, birthtimeMs });
    }
    isFile() { return (this.mode & constants.S_IFMT) === constants.S_IFREG; }
    isDirectory() { return (this.mode & constants.S_IFMT) === constants.S_IFDIR; }
    isSymbolicLink() { return (this.mode & constants.S_IFMT) === constants.S_IFLNK; }
    isFIFO() { return (this.mode & constants.S_IFMT) === constants.S_IFIFO; }
    isSocket() { return (this.mode & constants.S_IFMT) === constants.S_IFSOCK; }
    isBlockDevice() { return (this.mode & constants.S_IFMT) === constants.S_IFBLK; }
    isCharacterDevice() { return (this.mode & constants.S_IFMT) === constants.S_IFCHR; }
  }
  for (const name of ['atime', 'mtime', 'ctime', 'birthtime']) {
    Object.defineProperty(Stats.prototype, name, { get() { return new Date(this[`${name}Ms`] + 0.5); }, configurable: true, enumerable: true });
  }
  internal.fsStats = (...numbers) => new Stats(...numbers);
  class StatFs {}
  internal.fsStatFs = (type, bsize, blocks, bfree, bavail, files, ffree) => Object.assign(new StatFs(), { type, bsize, blocks, bfree, bavail, files, ffree });
  const kKind = Symbol('type');
  class Dirent {
    constructor(name, parentPath, kind) { this.name = name; this.parentPath = parentPath; this[kKind] = kind; }
    isFile() { return this[kKind] === 1; }
    isDirectory() { return this[kKind] === 2; }
    isSymbolicLink() { return this[kKind] === 3; }
    isFIFO() { return this[kKind] === 4; }
    isSocket() { return this[kKind] === 5; }
    isCharacterDevice() { return this[kKind] === 6; }
    isBlockDevice() { return this[kKind] === 7; }
  }
  internal.fsDirent = (name, parentPath, kind) => new Dirent(name, parentPath, kind);

  // An operation is the arguments of Rust for the arguments of a program, and what becomes of its value.
  const same = (value) => value;
  const stat = (name) => (path, options) => [name, [pathOf(path)], optionsOf(name, options) && same];
  const link = (name, first, second) => (from, to) => [name, [pathOf(from, first), pathOf(to, second)]];
  const write = (name, usual) => (path, data, options) => {
    const given = optionsOf(name, options, 'encoding', 'flag', 'mode', 'flush', 'signal');
    const rest = [flagsOf(given.flag, usual), modeOf(given.mode, 0o666), flag('flush', given.flush)];
    return ['writeFile', [pathOf(path), bytesOf(data, given), ...rest], same, given.signal];
  };
  const entries = (options) => {
    const given = inUtf8('readdir', optionsOf('readdir', options, 'encoding', 'withFileTypes', 'recursive'));
    return [flag('withFileTypes', given.withFileTypes), flag('recursive', given.recursive)];
  };
  const relative = (root, { parentPath, name }) => {
    const path = internal.builtin('path');
    return path.relative(root, path.join(parentPath, name));
  };
  const operations = {
    access: (path, mode) => ['access', [pathOf(path), modeOf(mode, 0)]],
    stat: stat('stat'), lstat: stat('lstat'), statfs: stat('statfs'),
    readlink: (path, options) => ['readlink', [pathOf(path)], inUtf8('readlink', optionsOf('readlink', options, 'encoding')) && same],
    realpath: (path, options) => ['realpath', [pathOf(path)], inUtf8('realpath', optionsOf('realpath', options, 'encoding')) && same],
    mkdtemp: (prefix, options) => ['mkdtemp', [pathOf(prefix, 'prefix')], inUtf8('mkdtemp', optionsOf('mkdtemp', options, 'encoding')) && same],
    truncate: (path, length) => ['truncate', [pathOf(path), lengthOf(length)]],
    utimes: (path, atime, mtime) => ['utimes', [pathOf(path), secondsOf(atime, 'atime'), secondsOf(mtime, 'mtime')]],
    lutimes: (path, atime, mtime) => ['lutimes', [pathOf(path), secondsOf(atime, 'atime'), secondsOf(mtime, 'mtime')]],
    chmod: (path, mode) => ['chmod', [pathOf(path), modeOf(mode)]],
    chown: (path, uid, gid) => ['chown', [pathOf(path), modeOf(uid, 0, 'uid'), modeOf(gid, 0, 'gid')]],
    lchown: (path, uid, gid) => ['lchown', [pathOf(path), modeOf(uid, 0, 'uid'), modeOf(gid, 0, 'gid')]],
    mkdir: (path, options) => {
      if (options === undefined) return ['mkdir', [pathOf(path)]];
      const given = typeof options === 'object' ? optionsOf('mkdir', options, 'recursive', 'mode') : { mode: options };
      return ['mkdirWith', [pathOf(path), flag('recursive', given.recursive), modeOf(given.mode, 0o777)]];
    },
    rm: (path, options) => {
      const given = optionsOf('rm', options, 'force', 'recursive', 'maxRetries', 'retryDelay');
      return ['rm', [pathOf(path), flag('recursive', given.recursive), flag('force', given.force), given.maxRetries ?? 0, given.retryDelay ?? 100]];
    },
    rmdir: (path, options) => ['rmdir', [pathOf(path)], optionsOf('rmdir', options) && same],
    unlink: (path) => ['unlink', [pathOf(path)]],
    readdir: (path, options) => {
      const [isTyped, isDeep] = entries(options);
      if (!isTyped && !isDeep) return ['readdir', [pathOf(path)]];
      return ['readdirWith', [pathOf(path), isDeep], isTyped ? same : (list) => list.map((it) => relative(path, it))];
    },
    opendir: (path, options) => ['opendir', [pathOf(path)], optionsOf('opendir', options) && ((native) => new internal.Dir(native))],
    readFile: (path, options) => {
      const given = optionsOf('readFile', options, 'encoding', 'flag', 'signal');
      const encoding = encodingOf(given);
      return ['readFile', [pathOf(path), flagsOf(given.flag, 'r')], (bytes) => decoded(bytes, encoding), given.signal];
    },
    writeFile: write('writeFile', 'w'), appendFile: write('appendFile', 'a'),
    symlink: (target, path) => ['symlink', [pathOf(target, 'target'), pathOf(path)]],
    link: link('link', 'existingPath', 'newPath'), rename: link('rename', 'oldPath', 'newPath'),
    copyFile: (from, to, mode) => {
      if (modeOf(mode, 0) > 1) throw notImplemented('A mode of fs.copyFile() but COPYFILE_EXCL');
      return ['copyFile', [pathOf(from, 'src'), pathOf(to, 'dest'), modeOf(mode, 0)]];
    },
    cp: (from, to, options) => {
      const known = ['dereference', 'errorOnExist', 'filter', 'force', 'mode', 'preserveTimestamps', 'recursive', 'verbatimSymlinks'];
      const given = optionsOf('cp', options, ...known);
      const { filter, force = true } = given;
      if (filter !== undefined) needFunction(filter, 'options.filter');
      if (modeOf(given.mode, 0) > 1) throw notImplemented('A mode of fs.cp() but COPYFILE_EXCL');
      const decide = filter && ((...paths) => {
        const answer = filter(...paths);
        if (typeof answer?.then === 'function') throw notImplemented('A filter of fs.cp() that returns a promise');
        return answer;
      });
      const flags = ['dereference', 'errorOnExist', 'force', 'preserveTimestamps', 'recursive', 'verbatimSymlinks'].map((name) => flag(name, name === 'force' ? force : given[name]));
      return ['cp', [pathOf(from, 'src'), pathOf(to, 'dest'), ...flags, modeOf(given.mode, 0) === 1, decide]];
    },
    glob: (pattern, options) => {
      const given = optionsOf('glob', options, 'cwd', 'exclude');
      const list = Array.isArray(pattern) ? pattern : [pattern];
      for (const it of list) if (typeof it !== 'string') throw invalidType('patterns', 'string', it);
      if (given.exclude !== undefined && typeof given.exclude !== 'function') throw notImplemented('A list of patterns as the option "exclude" of fs.glob()');
      return ['glob', [list, given.cwd === undefined ? '.' : pathOf(given.cwd, 'options.cwd'), given.exclude]];
    },
    open: (path, flags, mode) => ['open', [pathOf(path), flagsOf(flags, 'r'), modeOf(mode, 0o666)], (native) => internal.fsOpened(native)],
  };
  // Calls an operation, whose signal is followed until it ends.
  const start = ([name, args, value = same, signal], callback) => {
    if (signal === undefined) {
      natives.fs(name, (error, found) => (error ? callback(error) : callback(null, value(found))), undefined, ...args);
      return;
    }
    const [controller, stop] = internal.follow(signal);
    natives.fs(name, (error, found) => {
      stop();
      if (error) callback(error);
      else callback(null, value(found));
    }, controller, ...args);
  };
  internal.fsStart = start;
  internal.fsPromised = (operation) => new Promise((resolve, reject) => start(operation, (error, value) => (error ? reject(error) : resolve(value))));
  internal.fsOperations = operations;
  internal.fsShapes = { bytesOf, constants, decoded, encodingOf, flag, lengthOf, modeOf, optionsOf, pathOf, secondsOf };

  const { F_OK, R_OK, W_OK, X_OK } = constants;
  const fs = { constants, Stats, Dirent, F_OK, R_OK, W_OK, X_OK };
  for (const name of Object.keys(operations)) {
    fs[name] = { [name](...args) {
      const callback = args.pop();
      needFunction(callback, 'cb');
      start(operations[name](...args), callback);
    } }[name];
  }
  fs.exists = (path, callback) => {
    needFunction(callback, 'cb');
    start(operations.access(path), (error) => callback(!error));
  };
  Object.defineProperty(fs.exists, Symbol.for('nodejs.util.promisify.custom'), { value: (path) => new Promise((resolve) => fs.exists(path, resolve)) });

  // What blocks.
  const sync = (name, check = operations[name]) => (...args) => {
    const [native, given, value = same] = check(...args);
    return value(natives.fsSync(native === 'mkdirWith' ? 'mkdir' : native, ...given));
  };
  for (const name of ['symlink', 'link', 'rename', 'copyFile', 'writeFile', 'appendFile', 'readlink', 'realpath', 'unlink', 'rmdir', 'utimes', 'truncate', 'chmod', 'access', 'cp', 'glob']) {
    fs[`${name}Sync`] = sync(name);
  }
  fs.mkdirSync = sync('mkdir', (path, options) => operations.mkdir(path, options ?? {}));
  const statSync = (name) => (path, options) => {
    const { throwIfNoEntry } = optionsOf(name, options, 'throwIfNoEntry');
    try {
      return natives.fsSync(name, pathOf(path));
    } catch (error) {
      if (throwIfNoEntry === false && error.code === 'ENOENT') return undefined;
      throw error;
    }
  };
  fs.statSync = statSync('stat');
  fs.lstatSync = statSync('lstat');
  fs.readdirSync = (path, options) => {
    const [isTyped, isDeep] = entries(options);
    const root = pathOf(path);
    if (!isDeep) return natives.fsSync('readdir', root, isTyped);
    const found = natives.fsSync('readdir', root, true);
    // The list grows while it is read.
    for (let i = 0; i < found.length; i++) {
      const { parentPath, name } = found[i];
      if (found[i].isDirectory()) found.push(...natives.fsSync('readdir', internal.builtin('path').join(parentPath, name), true));
    }
    return isTyped ? found : found.map((it) => relative(root, it));
  };
  fs.writeSync = (fd, data, ...rest) => {
    if (typeof fd !== 'number') throw invalidType('fd', 'number', fd);
    const bytes = internal.dataOf(data, 'buffer');
    if (fd !== 1 && fd !== 2) return internal.fsWriteSync(fd, data, rest);
    if (rest.some((value) => value !== undefined && value !== null)) throw notImplemented('An offset, length, position or encoding of fs.writeSync()');
    return natives.write(fd, bytes);
  };
  fs.rmSync = (path, options) => {
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
  fs.existsSync = (path) => typeof path === 'string' && natives.exists(path);
  fs.mkdtempSync = (prefix, options) => {
    inUtf8('mkdtempSync', optionsOf('mkdtempSync', options, 'encoding'));
    return natives.makeTemporary(pathOf(prefix, 'prefix'));
  };
  fs.readFileSync = (path, options) => {
    const encoding = encodingOf(optionsOf('readFileSync', options, 'encoding'));
    return decoded(natives.readBytes(pathOf(path)), encoding);
  };
  internal.builtin('fs_open')(fs);
  // Most programs watch no files.
  for (const name of ['watch', 'watchFile', 'unwatchFile']) fs[name] = (...args) => internal.builtin('fs_watch')[name](...args);
  Object.defineProperty(fs, 'promises', { get: () => internal.builtin('fs/promises'), configurable: true, enumerable: true });
  return fs;
})
