'use strict';
// N104: exec and execFile of what is missing, and an abort before, meanwhile and behind.
const { log } = require('./_lib');
const { exec, execFile } = require('child_process');
const util = require('util');
const none = 'no-such-program-here';
const show = (e, out, err) => log([e && e.name, e && e.code, e && e.killed, e && e.signal, e && e.cmd, e && e.message, out, err].map((x) => JSON.stringify(x ?? null)).join(' '));
const run = (start) => new Promise((resolve) => {
  const c = start((e, out, err) => { show(e, out, err); });
  log([c.stdin, c.stdout, c.stderr].map((s) => (s ? 'stream' : 'null')).join('-'));
  c.on('error', (e) => log('error ' + e.name + ' ' + e.code));
  c.on('close', () => { log('close'); resolve(); });
});
(async () => {
  await run((cb) => execFile(none, ['a'], cb));
  await run((cb) => execFile(none, ['a'], { timeout: 5000 }, cb));
  await run((cb) => execFile(none, { signal: AbortSignal.abort() }, cb));
  const controller = new AbortController();
  await run((cb) => { const c = execFile(none, { signal: controller.signal }, cb); controller.abort(); return c; });
  await run((cb) => exec('echo a', { shell: '/no/such/shell' }, cb));
  await run((cb) => execFile(none, ['a'], { cwd: '/no/such/directory' }, cb));
  await run((cb) => exec('sleep 60', { signal: AbortSignal.abort() }, cb));
  const second = new AbortController();
  await run((cb) => { const c = exec('exec sleep 60', { signal: second.signal }, cb); setImmediate(() => second.abort()); return c; });
  const late = new AbortController();
  await run((cb) => exec('true', { signal: late.signal }, cb));
  late.abort();
  const what = (e) => log([e.name, e.code, e.message].join(' '));
  await util.promisify(execFile)(none).catch(what);
  await util.promisify(exec)('sleep 60', { signal: AbortSignal.abort() }).catch(what);
  const third = new AbortController();
  const aborted = util.promisify(execFile)('sleep', ['60'], { signal: third.signal });
  setImmediate(() => third.abort(new TypeError('mine')));
  await aborted.catch(what);
})();
