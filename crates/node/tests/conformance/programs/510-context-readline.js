'use strict';
// O8 O9: lines run with the context of what makes them, questions too.
const { log, block, tmp } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const readline = require('readline');
const { PassThrough } = require('stream');
const input = als.run('input', () => new PassThrough());
const rl = als.run('rl', () => readline.createInterface({ input }));
als.run('on', () => { rl.on('line', (l) => at('line-' + l)); rl.on('close', () => { at('close'); als.exit(iterate); }); });
als.run('ask', () => rl.question('', (a) => at('answer-' + a)));
als.run('w1', () => input.write('a\nb\n'));
setImmediate(() => { als.run('w2', () => input.write('c\n')); setImmediate(() => als.run('ender', () => input.end())); });
function iterate() {
  const input = new PassThrough();
  const rl = als.run('rl2', () => readline.createInterface({ input }));
  als.run('loop', async () => { for await (const l of rl) at('loop-' + l); at('loop-over'); });
  als.run('w3', () => input.write('x\n'));
  setImmediate(() => als.run('w4', () => input.end('y\n')));
}
