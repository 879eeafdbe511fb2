'use strict';
// N115: removeAllListeners removes array indices first, then names in the order of their first listeners, then symbols.
const { log } = require('./_lib');
const EventEmitter = require('events');
const { errorMonitor } = EventEmitter;
const nothing = () => {};
const one = new EventEmitter();
one.on(errorMonitor, nothing);
for (const name of ['b', 'a', '2', '10', '1', '01', 'a', '-1', 'error']) one.on(name, nothing);
one.on('removeListener', (name) => log('removed ' + String(name)));
one.once('c', nothing);
log(one.eventNames().map(String).join(' '));
one.removeAllListeners();
log('left ' + one.eventNames().length);
const two = new EventEmitter();
two.on('a', nothing);
two.on('b', nothing);
two.on('removeListener', (name) => {
  log('removed ' + name);
  two.on(name === 'a' ? 'c' : 'b', nothing);
});
two.removeAllListeners();
log('left ' + two.eventNames().length);
const three = new EventEmitter();
let added = 0;
three.on('a', nothing);
three.on('a', nothing);
three.on('removeListener', (name) => {
  log(`removed ${name} ${three.listenerCount('a')}`);
  if (added++ < 2) three.on('a', nothing);
});
three.removeAllListeners('a');
log('left ' + three.listenerCount('a'));
three.removeAllListeners('removeListener');
log('names ' + three.eventNames().join(' '));
