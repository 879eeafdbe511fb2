'use strict';
// N142: corked chunks are written together, by writev if there is one, when the last cork is out.
const { log } = require('./_lib');
const { Writable } = require('stream');
const w = new Writable({
  write(c, e, cb) { log('write-' + c); cb(); },
  writev(all, cb) { log('writev-' + all.map((x) => x.chunk).join('')); process.nextTick(cb); },
});
w.on('finish', () => log('finish'));
w.cork(); w.cork();
w.write('a', () => log('cb-a'));
w.write('b', () => log('cb-b'));
w.uncork();
log('one-left');
process.nextTick(() => { w.uncork(); log('uncorked'); w.write('c', () => log('cb-c')); w.write('d', () => log('cb-d')); w.end(); });
