// `fs`: watched files and folders.
(function (natives, internal) {
  'use strict';
  const { hide, needFunction } = internal;
  const { flag, optionsOf, pathOf } = internal.fsShapes;
  const EventEmitter = internal.builtin('events');
  internal.builtin('net');
  const { kNative } = internal;
  const names = new internal.SafeSet(['change', 'close', 'error']);

  class FSWatcher extends EventEmitter {
    constructor(native) {
      super();
      internal.bindStream(this, native, names);
      internal.keepServer(this);
    }
    close() { this[kNative]('close'); }
    ref() { this[kNative]('ref', true); return this; }
    unref() { this[kNative]('ref', false); return this; }
  }
  internal.giveListeners(FSWatcher.prototype);
  class StatWatcher extends EventEmitter {
    ref() { this[kNative](true); return this; }
    unref() { this[kNative](false); return this; }
  }
  // The watchers of files by their paths, until they are no longer watched.
  const watched = new internal.SafeMap();
  const resolved = (path) => internal.builtin('path').resolve(pathOf(path, 'filename'));
  return {
    FSWatcher,
    watch(path, options, listener) {
      if (typeof options === 'function') [options, listener] = [undefined, options];
      const given = optionsOf('watch', options, 'persistent', 'recursive', 'signal');
      const watcher = new FSWatcher(natives.watch(pathOf(path, 'filename'), given.persistent !== false, flag('recursive', given.recursive)));
      if (listener) watcher.on('change', listener);
      const { signal } = given;
      if (signal) {
        const close = () => watcher.close();
        if (signal.aborted) process.nextTick(close);
        else {
          signal.addEventListener('abort', close, { once: true });
          watcher.once('close', () => signal.removeEventListener('abort', close));
        }
      }
      return watcher;
    },
    watchFile(path, options, listener) {
      if (typeof options === 'function') [options, listener] = [undefined, options];
      needFunction(listener, 'listener');
      const given = optionsOf('watchFile', options, 'persistent', 'interval');
      const name = resolved(path);
      let watcher = watched.get(name);
      if (watcher === undefined) {
        watcher = new StatWatcher();
        watched.set(name, watcher);
        const emit = (now, before) => watcher.emit('change', now, before);
        hide(watcher, kNative, natives.watchFile(name, given.persistent !== false, given.interval ?? 5007, emit));
      }
      watcher.on('change', listener);
      return watcher;
    },
    unwatchFile(path, listener) {
      const name = resolved(path);
      const watcher = watched.get(name);
      if (watcher === undefined) return;
      if (listener === undefined) watcher.removeAllListeners('change');
      else watcher.removeListener('change', listener);
      if (watcher.listenerCount('change') > 0) return;
      watched.delete(name);
      natives.unwatchFile(name);
    },
  };
})
