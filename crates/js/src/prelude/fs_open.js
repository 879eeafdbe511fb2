// `fs`: open files and folders, and the streams of files.
(function (natives, internal) {
  'use strict';
  const { hide, invalidType, needFunction } = internal;
  const { bytesOf, decoded, encodingOf, lengthOf, modeOf, optionsOf, pathOf, secondsOf } = internal.fsShapes;
  const { Readable, Writable, addAbortSignal } = internal.builtin('stream');
  const EventEmitter = internal.builtin('events');
  // The files that a program has opened by number.
  const files = new internal.SafeMap();
  let last = 2;

  class FileHandle extends EventEmitter {
    #native;
    #fd;
    constructor(native) {
      super();
      this.#native = native;
      this.#fd = native('fd');
      if (Number.isNaN(this.#fd)) this.#fd = ++last;
    }
    get fd() { return this.#native('fd') === undefined ? -1 : this.#fd; }
    call(operation, value, ...args) {
      return new Promise((resolve, reject) => this.start(operation, (error, found) => (error ? reject(error) : resolve(value ? value(found) : undefined)), ...args));
    }
    start(operation, callback, ...args) { this.#native(operation, callback, ...args); }
    stream(operation, object, options) { return this.#native(operation, object, options); }
    read(buffer, ...args) {
      const [view, offset, length, position] = range(buffer, args);
      return this.call('read', (bytes) => ({ bytesRead: filled(view, offset, bytes), buffer: view }), length, position);
    }
    write(data, ...args) {
      const [bytes, position] = part(data, args);
      return this.call('write', (bytesWritten) => ({ bytesWritten, buffer: data }), bytes, position);
    }
    readFile(options) {
      const encoding = encodingOf(optionsOf('FileHandle.readFile', options, 'encoding'));
      return this.call('readFile', (bytes) => decoded(bytes, encoding));
    }
    writeFile(data, options) { return this.call('writeFile', undefined, bytesOf(data, optionsOf('FileHandle.writeFile', options, 'encoding'))); }
    appendFile(data, options) { return this.writeFile(data, options); }
    readv(buffers, position) {
      const views = viewsOf(buffers);
      return this.call('read', (bytes) => {
        let at = 0;
        for (const view of views) {
          const piece = bytes.subarray(at, at + view.byteLength);
          at += filled(view, 0, piece);
        }
        return { bytesRead: bytes.length, buffers };
      }, sizeOf(views), position);
    }
    writev(buffers, position) {
      const views = viewsOf(buffers);
      const whole = new Uint8Array(sizeOf(views));
      let at = 0;
      for (const view of views) at += filled(whole, at, view);
      return this.call('write', (bytesWritten) => ({ bytesWritten, buffers }), whole, position);
    }
    readLines(options) {
      return internal.builtin('readline').createInterface({ input: this.createReadStream(options), crlfDelay: Infinity });
    }
    stat(options) { return optionsOf('FileHandle.stat', options) && this.call('stat', (stats) => stats); }
    truncate(length) { return this.call('truncate', undefined, lengthOf(length)); }
    chmod(mode) { return this.call('chmod', undefined, modeOf(mode)); }
    chown(uid, gid) { return this.call('chown', undefined, modeOf(uid, 0, 'uid'), modeOf(gid, 0, 'gid')); }
    utimes(atime, mtime) { return this.call('utimes', undefined, secondsOf(atime, 'atime'), secondsOf(mtime, 'mtime')); }
    sync() { return this.call('sync'); }
    datasync() { return this.call('datasync'); }
    close() { return this.fd === -1 ? Promise.resolve() : this.call('close'); }
    createReadStream(options) { return make(ReadStream, options, (object, given) => this.stream('readStream', object, given)); }
    createWriteStream(options) { return make(WriteStream, options, (object, given) => this.stream('writeStream', object, given)); }
  }
  for (const name of ['call', 'start', 'stream']) hide(FileHandle.prototype, name, FileHandle.prototype[name]);
  if (Symbol.asyncDispose) hide(FileHandle.prototype, Symbol.asyncDispose, function () { return this.close(); });
  internal.fsOpened = (native) => new FileHandle(native);

  const viewsOf = (buffers) => {
    if (!Array.isArray(buffers)) throw invalidType('buffers', 'ArrayBufferView[]', buffers);
    return buffers.map((it) => (ArrayBuffer.isView(it) ? internal.dataOf(it, 'buffers') : internal.dataOf(undefined, 'buffers')));
  };
  const sizeOf = (views) => views.reduce((sum, view) => sum + view.byteLength, 0);
  // The part of a view that is to be read into: positional, or by options.
  const range = (buffer, args) => {
    let [offset, length, position] = args;
    if (!ArrayBuffer.isView(buffer)) {
      if (buffer !== undefined && (buffer === null || typeof buffer !== 'object')) throw invalidType('buffer', ['Buffer', 'TypedArray', 'DataView'], buffer);
      ({ offset, length, position } = buffer ?? {});
      buffer = buffer?.buffer ?? internal.builtin('buffer').Buffer.alloc(16384);
    } else if (offset !== null && typeof offset === 'object') {
      ({ offset, length, position } = offset);
    }
    offset ??= 0;
    length ??= buffer.byteLength - offset;
    if (offset < 0 || offset > buffer.byteLength) throw internal.outOfRange('offset', `>= 0 && <= ${buffer.byteLength}`, offset);
    if (length < 0 || length > buffer.byteLength - offset) throw internal.outOfRange('length', `>= 0 && <= ${buffer.byteLength - offset}`, length);
    return [buffer, offset, length, typeof position === 'bigint' ? Number(position) : position < 0 ? null : position];
  };
  const filled = (view, offset, bytes) => {
    new Uint8Array(view.buffer, view.byteOffset, view.byteLength).set(bytes, offset);
    return bytes.length;
  };
  // What is to be written: a part of a view, or a text with its position and encoding.
  const part = (data, args) => {
    if (typeof data === 'string') return [bytesOf(data, { encoding: args[1] }), args[0]];
    const bytes = internal.dataOf(data, 'buffer');
    let [offset, length, position] = args;
    if (offset !== null && typeof offset === 'object') ({ offset, length, position } = offset);
    offset ??= 0;
    length ??= bytes.byteLength - offset;
    if (offset < 0 || offset > bytes.byteLength) throw internal.outOfRange('offset', `>= 0 && <= ${bytes.byteLength}`, offset);
    if (length < 0 || length > bytes.byteLength - offset) throw internal.outOfRange('length', `>= 0 && <= ${bytes.byteLength - offset}`, length);
    return [bytes.subarray(offset, offset + length), position];
  };

  class Dir {
    #native;
    constructor(native) { this.#native = native; }
    get path() { return this.#native('path'); }
    #call(operation, callback) {
      if (callback !== undefined) {
        needFunction(callback, 'callback');
        this.#native(operation, callback);
        return undefined;
      }
      return new Promise((resolve, reject) => this.#native(operation, (error, value) => (error ? reject(error) : resolve(value))));
    }
    read(callback) { return this.#call('read', callback); }
    close(callback) { return this.#call('close', callback); }
    async* entries() {
      try {
        for (let entry = await this.read(); entry !== null; entry = await this.read()) yield entry;
      } finally {
        await this.close();
      }
    }
    [Symbol.asyncIterator]() { return this.entries(); }
  }
  internal.Dir = Dir;

  const names = new internal.SafeSet([...internal.streamEvents, 'open', 'ready']);
  const streamOf = (Base, name, isWritable) => {
    function Class(path, options) {
      if (!(this instanceof Class)) return new Class(path, options);
      const given = checked(options);
      EventEmitter.call(this);
      hide(this, 'streamSettings', { encoding: given.encoding ?? 'utf8' });
      this.path = pathOf(path);
      internal.bindStream(this, natives.fsStream(this, isWritable, this.path, given), names);
      begin(this, given, isWritable);
    }
    Object.defineProperty(Class, 'name', { value: name });
    Object.setPrototypeOf(Class, Base);
    Class.prototype = Object.create(Base.prototype, { constructor: { value: Class, writable: true, configurable: true } });
    return Class;
  };
  const checked = (options) => {
    const given = optionsOf('createStream', options, 'encoding', 'flags', 'mode', 'start', 'end', 'highWaterMark', 'autoClose', 'flush', 'signal', 'emitClose');
    encodingOf(given);
    if (given.emitClose === false) throw internal.notImplemented('The option "emitClose" of a stream of a file');
    for (const name of ['start', 'end']) {
      const value = given[name];
      if (value === undefined || value === Infinity) continue;
      if (typeof value !== 'number') throw invalidType(name, 'number', value);
      if (!Number.isInteger(value) || value < 0) throw internal.outOfRange(name, '>= 0 && <= 9007199254740991', value);
    }
    if (given.start !== undefined && given.end !== undefined && given.start > given.end) {
      throw internal.outOfRange('start', `<= "end" (here: ${given.end})`, given.start);
    }
    return given.end === Infinity ? { ...given, end: undefined } : given;
  };
  const begin = (stream, given, isWritable) => {
    if (given.encoding && !isWritable) stream.setEncoding(given.encoding);
    if (given.signal) addAbortSignal(given.signal, stream);
  };
  const ReadStream = streamOf(Readable, 'ReadStream', false);
  const WriteStream = streamOf(Writable, 'WriteStream', true);
  hide(WriteStream.prototype, 'close', function (callback) {
    if (callback) this.once('close', callback);
    this.end();
  });
  hide(ReadStream.prototype, 'close', function (callback) {
    if (callback) this.once('close', callback);
    this.destroy();
  });
  const make = (Class, options, bind) => {
    const given = checked(options);
    const stream = internal.wrapStream(Class, (object) => bind(object, given), { encoding: given.encoding ?? 'utf8' }, names);
    begin(stream, given, Class === WriteStream);
    return stream;
  };

  // Functions with the number of a file.
  const opened = (fd) => {
    if (typeof fd !== 'number') throw invalidType('fd', 'number', fd);
    return files.get(fd);
  };
  const closed = (syscall) => {
    const error = new Error(`EBADF: bad file descriptor, ${syscall}`);
    return Object.assign(error, { errno: -9, code: 'EBADF', syscall });
  };
  const withFile = (fd, syscall, callback, f) => {
    needFunction(callback, 'cb');
    const file = opened(fd);
    if (file === undefined) process.nextTick(callback, closed(syscall));
    else f(file);
  };
  // A file that is open, for what blocks.
  const fileOf = (fd, syscall) => {
    const file = opened(fd);
    if (file === undefined) throw closed(syscall);
    return file;
  };
  // What lends an open file to Rust.
  internal.fsLender = (fd) => (operation) => fileOf(fd, 'spawn').stream(operation);
  internal.fsWriteSync = (fd, data, args) => {
    const [bytes, position] = part(data, args);
    return fileOf(fd, 'write').stream('writeSync', bytes, position);
  };
  return (fs) => {
    Object.assign(fs, {
      openSync(path, flags, mode) {
        const isNumber = typeof flags === 'number' && natives.platform === 'linux';
        const [name, args] = internal.fsOperations.open(path, isNumber ? undefined : flags, mode);
        if (isNumber) args[1] = flags | 0;
        const file = new FileHandle(natives.fsSync(name, ...args));
        const { fd } = file;
        files.set(fd, file);
        return fd;
      },
      closeSync(fd) {
        const file = fileOf(fd, 'close');
        files.delete(fd);
        file.stream('closeSync');
      },
      readSync(fd, buffer, ...args) {
        const file = fileOf(fd, 'read');
        const [view, offset, length, position] = range(buffer, args);
        return filled(view, offset, file.stream('readSync', length, position));
      },
      fstatSync(fd, options) { return optionsOf('fstatSync', options) && fileOf(fd, 'fstat').stream('statSync'); },
      ReadStream, WriteStream, Dir,
      createReadStream: (path, options) => new ReadStream(path, options), createWriteStream: (path, options) => new WriteStream(path, options),
      open(path, ...args) {
        const callback = args.pop();
        needFunction(callback, 'cb');
        internal.fsStart(internal.fsOperations.open(path, ...args), (error, file) => {
          if (error) {
            callback(error);
            return;
          }
          const { fd } = file;
          files.set(fd, file);
          callback(null, fd);
        });
      },
      close(fd, callback = (error) => { if (error) throw error; }) {
        withFile(fd, 'close', callback, (file) => {
          files.delete(fd);
          file.start('close', (error) => callback(error ?? null));
        });
      },
      read(fd, buffer, ...args) {
        if (typeof buffer === 'function') [args, buffer] = [[buffer], undefined];
        const callback = args.pop();
        withFile(fd, 'read', callback, (file) => {
          const [view, offset, length, position] = range(buffer, args);
          file.start('read', (error, bytes) => (error ? callback(error) : callback(null, filled(view, offset, bytes), view)), length, position);
        });
      },
      write(fd, data, ...args) {
        const callback = args.pop();
        withFile(fd, 'write', callback, (file) => {
          const [bytes, position] = part(data, args);
          file.start('write', (error, count) => (error ? callback(error) : callback(null, count, data)), bytes, position);
        });
      },
      fstat(fd, ...args) {
        const callback = args.pop();
        optionsOf('fstat', args[0]);
        withFile(fd, 'fstat', callback, (file) => file.start('stat', callback));
      },
      ftruncate(fd, ...args) {
        const callback = args.pop();
        withFile(fd, 'ftruncate', callback, (file) => file.start('truncate', (error) => callback(error ?? null), lengthOf(args[0])));
      },
      fsync(fd, callback) { withFile(fd, 'fsync', callback, (file) => file.start('sync', (error) => callback(error ?? null))); },
      fdatasync(fd, callback) { withFile(fd, 'fdatasync', callback, (file) => file.start('datasync', (error) => callback(error ?? null))); },
    });
  };
})
