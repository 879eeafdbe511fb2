'use strict';
// N151: events whose names are made at run time; the listeners of an event.
const { log } = require('./_lib');
const EventEmitter = require('events');

const e = new EventEmitter();
e.on('newListener', (name) => log('new ' + name));
e.on('removeListener', (name) => log('removed ' + name));
const topics = [1, 2].map((n) => 'topic/' + n);
for (const topic of topics) e.on(topic, (text) => log(`${topic} ${text}`));
e.on('fixed', (text) => log('fixed ' + text));
e.once('topic/1', (text) => log('once ' + text));
log(e.eventNames().join());
log(`${e.emit('topic/' + 1, 'a')} ${e.emit('topic/3', 'b')} ${e.emit('fix' + 'ed', 'c')}`);
log(`${e.listenerCount('topic/1')} ${e.listenerCount('topic/2')}`);
e.once('topic/2', (text) => log('late ' + text));
const calls = e.listeners('topic/2');
log('listeners ' + calls.length);
calls[0]('called');
log('still ' + e.listenerCount('topic/2'));
for (const call of e.rawListeners('topic/2')) call('raw');
log('left ' + e.listenerCount('topic/2'));
e.removeAllListeners('topic/2');
log(e.eventNames().join());
e.emit('topic/1', 'last');
