'use strict';
// N104: exec and execFile: options, and what their errors carry.
const { log } = require('./_lib');
const { exec, execFile } = require('child_process');
const util = require('util');
const run = (start) => new Promise((resolve) => start((e, out, err) => {
  log([e && e.name, e && e.code, e && e.killed, e && e.signal, e && e.cmd, e && e.message, out, err].map((x) => JSON.stringify(x ?? null)).join(' '));
  resolve();
}));
(async () => {
  await run((cb) => exec('echo out; echo err >&2; exit 3', cb));
  await run((cb) => exec('exit 4', cb));
  await run((cb) => exec('kill -9 $$', cb));
  await run((cb) => exec('sleep 60', { timeout: 50 }, cb));
  await run((cb) => exec('sleep 60', { timeout: 50, killSignal: 'SIGKILL' }, cb));
  await run((cb) => exec('echo 123456789; exec sleep 60', { maxBuffer: 4 }, cb));
  await run((cb) => exec('echo 123456789 >&2; exec sleep 60', { maxBuffer: 4 }, cb));
  await run((cb) => exec('pwd; echo "$A-$HOME"', { cwd: '/', env: { A: 'b' } }, cb));
  await run((cb) => exec('printf "\\351"', { encoding: 'latin1' }, cb));
  await run((cb) => exec('printf "\\351"', { encoding: 'hex' }, cb));
  await run((cb) => execFile('no-such-program', ['a', 'b'], cb));
  await run((cb) => execFile('sh', ['-c', 'exit 2'], cb));
  await run((cb) => execFile('echo', ['$A'], { shell: '/bin/sh', env: { A: 'b c' } }, cb));
  await run((cb) => exec('true', { cwd: '/no/such/directory' }, cb));
  await run((cb) => exec('sleep 60', { signal: AbortSignal.abort() }, cb));
  const controller = new AbortController();
  const aborted = run((cb) => exec('sleep 60', { signal: controller.signal }, cb));
  setImmediate(() => controller.abort());
  await aborted;
  const killed = run((cb) => { const child = exec('exec sleep 60', cb); log('kill ' + child.killed + ' ' + child.kill('SIGINT') + ' ' + child.killed); });
  await killed;
  const { stdout, stderr } = await util.promisify(exec)('echo hi');
  log(JSON.stringify([stdout, stderr]));
  await util.promisify(execFile)('sh', ['-c', 'echo out; exit 5']).catch((e) => log([e.code, e.stdout, e.stderr].map((x) => JSON.stringify(x)).join(' ')));
})();
