'use strict';
// O8: promised questions, iterated events and lines, a stream that is ended by another context.
const { log, block } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const readline = require('readline/promises');
const { PassThrough } = require('stream');
const { on, EventEmitter } = require('events');
const input = als.run('in', () => new PassThrough());
const rl = als.run('rl', () => readline.createInterface({ input }));
als.run('q', async () => { const a = await rl.question('?'); at('answer-' + a); const b = await als.run('q2', () => rl.question('?')); at('answer-' + b); rl.close(); at('closed'); als.exit(events); });
als.run('w', () => { input.write('one\n'); });
setImmediate(() => als.run('w2', () => { at('writes'); input.write('two\nthree\n'); }));
als.run('lines', () => rl.on('line', (l) => at('line-' + l)));
als.run('cl', () => rl.on('close', () => at('close')));
function events() {
  const e = als.run('e', () => new EventEmitter());
  const c = new AbortController();
  als.run('loop', async () => { try { for await (const [v] of als.run('iter', () => on(e, 'v', { signal: c.signal }))) { at('v-' + v); als.enterWith('v' + v); } } catch (x) { at('caught-' + x.name); } at('left'); });
  setImmediate(() => { als.run('emit', () => { e.emit('v', 1); e.emit('v', 2); at('emitted'); }); setImmediate(() => als.run('stopper', () => { c.abort(); at('stopped'); })); });
}
