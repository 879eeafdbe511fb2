'use strict';
// stream/consumers: text and buffer of a whole stream, with split characters, a byte order mark and an error.
const { log } = require('./_lib');
const { text, buffer } = require('stream/consumers');
const { Readable, PassThrough } = require('stream');
const chain = (name, n) => { let p = Promise.resolve(); for (let i = 1; i <= n; i++) p = p.then(() => log(name + i)); };
(async () => {
  const euro = Buffer.from('x\u20acy');
  log(String(await text(Readable.from([euro.subarray(0, 2), euro.subarray(2)])) === 'x\u20acy'));
  log(String(await text(Readable.from([Buffer.from('\ufeffa'), Buffer.from([0xe2, 0x82])])) === 'a\ufffd'));
  log((await buffer(Readable.from([Buffer.from('ab'), Buffer.from('c')]))).toString('hex'));
  const p = new PassThrough();
  const whole = text(p).then((t) => log('text-' + t));
  p.on('end', () => log('end'));
  p.on('close', () => log('close'));
  p.write('one ');
  setImmediate(() => { p.end('two'); log('ended'); });
  await whole;
  const q = new PassThrough();
  setImmediate(() => q.destroy(new Error('torn')));
  await text(q).catch((e) => log(e.message));
  const r = new PassThrough();
  setImmediate(() => r.destroy());
  await buffer(r).catch((e) => log(e.code));
})();
