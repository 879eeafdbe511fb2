'use strict';
// N110 N111 N113: listeners that emit, add and remove while they are called.
const { log } = require('./_lib');
const { EventEmitter } = require('events');
const e = new EventEmitter();
let depth = 0;
const c = () => log('c');
e.once('x', () => { log('once'); e.emit('x'); });
e.on('x', () => { log('a' + ++depth); if (depth === 1) { e.off('x', c); e.on('x', () => log('late')); e.prependListener('x', () => log('early')); e.emit('x'); log('back'); } depth--; });
e.on('x', c);
log(String(e.emit('x')));
log(String(e.listenerCount('x')));
log(String(e.emit('x')));
