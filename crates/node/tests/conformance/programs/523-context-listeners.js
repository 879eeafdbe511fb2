'use strict';
// O8: once, prepended and async listeners, emits inside of emits, bound ones; errors.
const { log, block } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const { EventEmitter, once } = require('events');
const e = new EventEmitter();
als.run('l', () => {
  e.on('x', (v) => { at('on-' + v); if (v === 1) als.run('re', () => e.emit('x', 2)); at('on-end-' + v); });
  e.once('x', (v) => { at('once-' + v); als.enterWith('entered'); });
  e.prependListener('x', (v) => at('first-' + v));
  e.on('x', AsyncResource.bind((v) => at('bound-' + v)));
  e.on('x', async (v) => { at('async-' + v); await null; at('async-after-' + v); });
});
als.run('emit', () => { e.emit('x', 1); at('after-emit'); });
at('main');
als.run('waiter', async () => { const [v] = await once(e, 'y'); at('waited-' + v); });
setImmediate(() => als.run('y', () => { e.emit('y', 5); at('y-after'); }));
als.run('err', () => e.on('error', (x) => at('error-' + x.message)));
setTimeout(() => { als.run('failing', () => e.emit('error', new Error('no'))); e.emit('x', 3); }, 100);
