'use strict';
// H111 H114: the end of the input: text without a line end, an open question, empty input, a signal, an input that was over.
const { log } = require('./_lib');
const readline = require('readline');
const { PassThrough, Readable } = require('stream');
const watch = (name, rl) => { for (const e of ['pause', 'close']) rl.on(e, () => log(name + '.' + e)); rl.on('line', (l) => log(name + '-' + JSON.stringify(l))); return rl; };
const a = new PassThrough();
const rl = watch('a', readline.createInterface({ input: a }));
rl.question('? ', (l) => log('never-' + l));
a.end('half');
watch('b', readline.createInterface({ input: Readable.from([]) }));
watch('c', readline.createInterface({ input: Readable.from(['x\n', '\n', 'y\r']) }));
setTimeout(() => {
  const ac = new AbortController();
  watch('d', readline.createInterface({ input: new PassThrough(), signal: ac.signal }));
  log('abort'); ac.abort(); log('aborted');
  watch('e', readline.createInterface({ input: new PassThrough(), signal: ac.signal }));
  process.nextTick(() => log('tick'));
}, 10);
setTimeout(() => {
  const input = new PassThrough();
  const f = watch('f', readline.createInterface({ input }));
  f.on('error', (e) => log('f.' + e.message));
  input.write('before\n');
  input.destroy(new Error('torn'));
  setImmediate(() => { log('closed-' + !!f.closed); shared(); });
}, 100);
function shared() {
  const g = new PassThrough();
  const one = watch('one', readline.createInterface({ input: g })), two = watch('two', readline.createInterface({ input: g }));
  g.write('both\n');
  one.close();
  g.resume();
  g.write('second\n');
  setImmediate(() => { two.close(); two.close(); log('end'); });
}
