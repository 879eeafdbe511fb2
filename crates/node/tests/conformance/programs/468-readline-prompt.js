'use strict';
// H112 H114: prompt, setPrompt, write, pause and resume of an interface that is no terminal.
const { log } = require('./_lib');
const readline = require('readline');
const { PassThrough } = require('stream');
const input = new PassThrough(), output = new PassThrough();
output.on('data', (d) => log('out-' + JSON.stringify(String(d))));
const rl = readline.createInterface({ input, output, prompt: '$ ' });
for (const e of ['pause', 'resume', 'close']) rl.on(e, () => log(e));
rl.on('line', (l) => { log('line-' + l); if (l === 'quit') rl.close(); else try { rl.prompt(); } catch (e) { log(e.code); } });
rl.prompt();
log('prompt-' + rl.getPrompt());
rl.setPrompt('# ');
rl.write('typed\nhalf');
rl.pause();
log('paused');
input.write(' and half\n');
setTimeout(() => {
  log('later');
  rl.prompt();
  setTimeout(() => {
    rl.question('q? ', (a) => { log('answer-' + a + '-' + rl.getPrompt()); });
    log('asked-' + rl.getPrompt());
    rl.question('r? ', () => log('never'));
    input.write('yes\nquit\nrest\n');
    log('written');
    setTimeout(() => { input.write('gone\n'); log('flowing-' + input.readableFlowing); }, 10);
  }, 10);
}, 10);
