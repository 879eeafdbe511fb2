'use strict';
// N108: an unref'd process lets the loop end; ref takes it back; a detached one leads a session of its own.
const { log } = require('./_lib');
const { spawn } = require('child_process');
const left = spawn('sleep', ['60'], { stdio: 'ignore', detached: true });
left.on('exit', () => log('never'));
left.unref();
const waited = spawn('sh', ['-c', 'exit 7'], { stdio: 'ignore' });
waited.unref();
waited.ref();
waited.on('exit', (code) => {
  log('exit ' + code);
  const session = spawn('sh', ['-c', 'read a b c d e f rest < /proc/$$/stat; [ "$f" = $$ ] && echo leader || echo member'], { detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
  session.stdout.on('data', (d) => log(String(d).trim()));
});
process.on('exit', () => { log('left ' + left.kill('SIGKILL')); });
