'use strict';
// N140 N141: from paused reading to flowing and back.
const { log } = require('./_lib');
const { Readable } = require('stream');
let n = 0;
const r = new Readable({ objectMode: true, highWaterMark: 2, read() { n++; log('read' + n); if (n <= 6) this.push('v' + n); else this.push(null); } });
r.on('end', () => log('end'));
r.on('close', () => log('close'));
r.on('pause', () => log('pause'));
r.on('resume', () => log('resume'));
log('first-' + r.read());
r.on('data', (d) => { log('data-' + d); if (d === 'v3') { r.pause(); setImmediate(() => { log('immediate'); r.resume(); }); } });
process.nextTick(() => log('tick'));
