'use strict';
// H114: a dialogue by promises: answers that wait, questions one after the other, an abort between, a close with an open question.
const { log } = require('./_lib');
const rlp = require('readline/promises');
const { PassThrough } = require('stream');
const chain = (name, n) => { let p = Promise.resolve(); for (let i = 1; i <= n; i++) p = p.then(() => log(name + i)); };
(async () => {
  const input = new PassThrough(), output = new PassThrough();
  output.on('data', (d) => log('out-' + JSON.stringify(String(d))));
  const rl = rlp.createInterface({ input, output });
  rl.on('line', (l) => log('line-' + l));
  setImmediate(() => { input.write('ann\n'); log('sent'); chain('c', 3); });
  const name = await rl.question('name? ');
  log('name-' + name);
  setImmediate(() => input.write('42\nextra\n'));
  const [age] = await Promise.all([rl.question('age? ')]);
  log('age-' + age);
  const ac = new AbortController();
  setImmediate(() => { ac.abort(new Error('why')); log('aborted'); input.write('late\n'); chain('d', 4); });
  try { await rl.question('still? ', { signal: ac.signal }); } catch (e) { log(e.name + '-' + e.code + '-' + e.cause.message); }
  try { await rl.question('never', { signal: ac.signal }); } catch (e) { log('before-' + e.name); }
  rl.question('open? ').then(() => log('never'), () => log('never'));
  rl.close();
  await rl.question('closed').catch((e) => log(e.name + '-' + e.code + '-' + e.message));
  log('end-' + rl.closed);
})();
