'use strict';
// N145: leaving a loop over a stream destroys it; the code after the loop waits for that.
const { log } = require('./_lib');
const { Readable } = require('stream');
const r = Readable.from(['a', 'b', 'c']);
r.on('close', () => log('close'));
r.on('end', () => log('end'));
(async () => {
  for await (const c of r) { log('chunk-' + c); if (c === 'b') break; }
  log('after-' + r.destroyed);
})();
const failing = new Readable({ objectMode: true, read() {} });
failing.push('x');
setTimeout(() => failing.destroy(new Error('gone')), 50);
(async () => {
  try { for await (const c of failing) log('chunk-' + c); } catch (e) { log('caught-' + e.message); }
})();
