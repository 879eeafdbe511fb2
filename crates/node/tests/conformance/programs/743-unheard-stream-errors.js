'use strict';
// N144 N114: an error of a stream that nobody hears, or whose listener throws, is uncaught, and no 'close' follows.
const { log } = require('./_lib');
const { Readable, Writable, Duplex, Transform } = require('stream');
const { errorMonitor } = require('events');
process.on('uncaughtException', (e) => log('uncaught ' + e.message));
const steps = [];
const step = (name, make) => steps.push(() => {
  log(name);
  const stream = make();
  stream.on('close', () => log(name + ' close'));
  setImmediate(() => setImmediate(() => {
    log(`${name} ${stream.destroyed} ${stream.errored ? stream.errored.message : null}`);
    next();
  }));
});
const next = () => { const one = steps.shift(); if (one) one(); };
step('readable', () => new Readable({ read() {} }).destroy(new Error('r')));
step('without', () => new Readable({ read() {} }).destroy());
step('read', () => new Readable({ read() { this.destroy(new Error('in read')); } }).resume());
step('listener', () => {
  const r = new Readable({ read() {} });
  r.on('error', () => { log('heard'); throw new Error('mine'); });
  r.on('error', () => log('never'));
  return r.destroy(new Error('r'));
});
step('monitor', () => new Readable({ read() {} }).on(errorMonitor, (e) => log('monitor ' + e.message)).destroy(new Error('m')));
step('writable', () => {
  const w = new Writable({ write(c, e, cb) { cb(new Error('w')); } });
  w.on('finish', () => log('finish'));
  w.write('a', (e) => log('first ' + e.message));
  w.write('b', (e) => log('second ' + e.message));
  return w;
});
step('kept', () => {
  const w = new Writable({ autoDestroy: false, write(c, e, cb) { cb(new Error('k')); } });
  w.write('a', (e) => log('first ' + e.message));
  return w;
});
step('duplex', () => new Duplex({ read() {}, write(c, e, cb) { cb(); } }).destroy(new Error('d')));
step('transform', () => { const t = new Transform({ transform(c, e, cb) { cb(new Error('t')); } }); t.write('a'); return t; });
step('piped', () => {
  const r = new Readable({ read() {} });
  const w = new Writable({ write(c, e, cb) { cb(); } });
  w.on('unpipe', () => log('unpipe'));
  r.on('close', () => log('source close'));
  r.pipe(w);
  return w.destroy(new Error('p'));
});
step('heard', () => new Readable({ read() {} }).on('error', (e) => log('heard ' + e.message)).destroy(new Error('h')));
next();
