'use strict';
// N145: an awaited chunk takes one microtask, buffered or not.
const { log } = require('./_lib');
const { Readable } = require('stream');
const count = (name, links) => {
  let p = Promise.resolve();
  for (let i = 1; i <= links; i++) p = p.then(() => log(name + i));
};
const r = new Readable({ objectMode: true, read() {} });
r.push(1);
r.push(2);
(async () => {
  count('a', 5);
  for await (const chunk of r) {
    log('chunk-' + chunk);
    if (chunk === 2) setImmediate(() => { log('push'); r.push(3); count('b', 4); });
    if (chunk === 3) { count('c', 3); r.push(null); }
  }
  log('over');
})();
r.on('end', () => log('end'));
r.on('close', () => log('close'));
