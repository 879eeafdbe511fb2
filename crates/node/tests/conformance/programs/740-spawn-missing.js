'use strict';
// N102: a program that is missing: its pipes, 'error' in place of 'exit', and 'close', which the output pipes precede.
const { log } = require('./_lib');
const { spawn } = require('child_process');
const kinds = ['pipe', 'ignore', 'inherit'];
const cases = [];
for (const a of kinds) for (const b of kinds) for (const c of kinds) cases.push([a, b, c]);
const next = () => {
  const stdio = cases.shift();
  if (!stdio) return ordered();
  const c = spawn('no-such-program-here', ['a'], { stdio });
  const streams = ['stdin', 'stdout', 'stderr'];
  log(stdio.join('-') + ' ' + streams.map((s) => (c[s] ? 'stream' : 'null')).join('-') + ' pid-' + (c.pid ?? null) + ' kill-' + c.kill());
  for (const event of ['spawn', 'exit']) c.on(event, () => log(event));
  c.on('error', (e) => log(`error ${e.code} ${e.syscall} ${e.path} ${e.message} ${c.exitCode} ${c.signalCode} ${c.kill()}`));
  for (const s of ['stdout', 'stderr']) if (c[s]) c[s].on('end', () => log(s + '.end'));
  c.on('close', () => { log(`close ${c.exitCode} ${c.signalCode}`); setImmediate(next); });
};
function ordered() {
  process.nextTick(() => log('tick.before'));
  const c = spawn('no-such-program-here');
  c.on('error', () => { log('error'); process.nextTick(() => log('error.tick')); });
  c.on('close', () => { log('close'); setImmediate(missing); });
  process.nextTick(() => log('tick'));
  Promise.resolve().then(() => log('promise'));
  setImmediate(() => log('immediate'));
  log('sync');
}
function missing() {
  const c = spawn('true', { cwd: '/no/such/directory', stdio: 'ignore' });
  c.on('error', (e) => log(e.message));
  c.on('close', () => { log('close'); setImmediate(refused); });
}
function refused() {
  const c = spawn('/etc/passwd', { stdio: ['pipe', 'ignore', 'ignore'] });
  c.on('error', (e) => log(`${e.message} ${c.exitCode}`));
  c.on('close', () => { log('close'); setImmediate(thrown); });
}
function thrown() {
  for (const program of ['/etc/passwd/x', 'a\0b']) {
    try { spawn(program); } catch (e) { log(`thrown ${e.name} ${e.code}`); }
  }
  process.on('uncaughtException', (e) => log('uncaught ' + e.message));
  const c = spawn('no-such-program-here');
  c.on('close', () => log('never'));
  setImmediate(() => setImmediate(() => setImmediate(() => log('end'))));
}
next();
