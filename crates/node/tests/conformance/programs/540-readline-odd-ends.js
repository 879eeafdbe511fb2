'use strict';
// H111 H112: lines cut anywhere: CR and LF apart, a lone CR, an end without a break, empty lines, other breaks of Unicode, a close in the middle.
const { log } = require('./_lib');
const readline = require('readline');
const { PassThrough } = require('stream');
const cases = {
  split: ['a\r', '\nb', '\r\n', 'c'],
  lone: ['a\rb\r', '\rc'],
  mixed: ['\n\r\n\r', 'x\n\n'],
  bytes: [Buffer.from([0xc3]), Buffer.from([0xa9, 0x0a, 0xe2, 0x82]), Buffer.from([0xac])],
  bad: [Buffer.from([0xff, 0x0a, 0xc3])],
  breaks: ['a\u2028b\u2029c\u0085d\u000be\u000cf\n'],
  empty: [],
  blank: ['\n'],
  bom: ['\ufeffa\n'],
};
const names = Object.keys(cases);
const next = () => {
  const name = names.shift();
  if (!name) return void closing();
  const input = new PassThrough();
  const rl = readline.createInterface({ input, crlfDelay: Infinity });
  rl.on('line', (l) => log(`${name} ${JSON.stringify(l)}`));
  rl.on('pause', () => log(name + ' pause'));
  rl.on('close', () => { log(name + ' close'); setImmediate(next); });
  const pieces = cases[name].slice();
  const feed = () => { if (pieces.length) { input.write(pieces.shift()); setImmediate(feed); } else input.end(); };
  feed();
};
const closing = () => {
  const input = new PassThrough();
  const rl = readline.createInterface({ input });
  rl.on('line', (l) => { log('line ' + l); if (l === 'b') { rl.close(); log('closed ' + rl.closed); } });
  rl.on('close', () => { log('close'); process.nextTick(() => log('tick')); });
  input.on('pause', () => log('input.pause'));
  input.on('end', () => log('never'));
  input.write('a\nb\nc\nd');
  setImmediate(() => { input.write('e\n'); input.end(); setImmediate(again); });
};
const again = () => {
  const input = new PassThrough();
  const rl = readline.createInterface({ input });
  rl.on('line', (l) => { log('paused ' + l); rl.pause(); setTimeout(() => { if (!rl.closed) { log('resume'); rl.resume(); } }, 20); });
  rl.on('pause', () => log('pause'));
  rl.on('resume', () => log('resumed'));
  rl.on('close', () => log('end'));
  input.write('1\n2\n');
  setTimeout(() => input.end('3'), 10);
};
next();
