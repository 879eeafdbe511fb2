'use strict';
// N140 N142 N90: a file written and read as a stream.
const { log, tmp } = require('./_lib');
const fs = require('fs');
const w = fs.createWriteStream(tmp('f'));
for (const e of ['open', 'ready', 'finish', 'close']) w.on(e, () => { log('w-' + e); process.nextTick(() => log('w-' + e + '.tick')); });
w.write('hello ', () => log('cb'));
w.end('world', () => log('end-cb'));
w.on('close', () => {
  const r = fs.createReadStream(tmp('f'), { highWaterMark: 8 });
  for (const e of ['open', 'ready', 'end', 'close']) r.on(e, () => { log('r-' + e); process.nextTick(() => log('r-' + e + '.tick')); });
  r.on('data', (d) => { log('data-' + String(d).trim()); process.nextTick(() => log('data.tick')); queueMicrotask(() => log('data.micro')); });
});
process.nextTick(() => log('tick'));
