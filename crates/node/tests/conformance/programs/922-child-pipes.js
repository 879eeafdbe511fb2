'use strict';
// N102, N104: the pipes of a child: ends without a reader, closes in the closing phase, writes to nobody, signals after the exit, limits of output.
const { log } = require('./_lib');
const { spawn, exec } = require('child_process');
const show = (e) => [e.message, e.code, e.errno ?? '-', e.syscall ?? '-'].join('|');
const watch = (c) => {
  c.on('error', (e) => log('error ' + show(e)));
  c.on('exit', (code, signal) => log(`exit ${code} ${signal}`));
  c.on('close', (code, signal) => log(`close ${code} ${signal}`));
  for (const name of ['stdin', 'stdout', 'stderr']) {
    if (!c[name]) continue;
    c[name].on('error', (e) => log(`${name}.error ${show(e)}`));
    if (name !== 'stdin') c[name].on('end', () => log(name + '.end'));
    c[name].on('close', () => log(name + '.close'));
  }
  return new Promise((resolve) => c.on('close', () => setTimeout(resolve, 20)));
};
const written = (name) => (e) => log(`${name} ${e ? e.code : 'fine'}`);
const piped = { stdio: ['pipe', 'pipe', 'ignore'] };
const pause = () => new Promise((resolve) => setTimeout(resolve, 50));
const output = (command, maxBuffer, encoding) => new Promise((resolve) => {
  exec(command, { maxBuffer, encoding }, (e, out) => { log(`${maxBuffer} ${encoding} ${e ? e.code : 'fine'} ${out}`); resolve(); });
});
(async () => {
  log('missing');
  let c = spawn('no-such-program-here');
  let closed = watch(c);
  c.stdin.write('abc', written('write'));
  await closed;
  log('early ends');
  c = spawn('sh', ['-c', 'exec 1>&-; read line; sleep 0.1; exit 3'], piped);
  closed = watch(c);
  await pause();
  c.stdin.end('x\n');
  await closed;
  log(`${c.kill()} ${c.killed}`);
  c.stdin.write('x', written('late'));
  await pause();
  log('no reader');
  c = spawn('sh', ['-c', 'exec 0<&-; echo ready; sleep 0.1; exec 1>&-; sleep 0.2'], piped);
  c.stdout.once('data', (d) => { log(String(d).trim()); setTimeout(() => c.stdin.write('x', written('write')), 50); });
  closed = watch(c);
  await closed;
  log('large');
  c = spawn('sh', ['-c', 'exec 1>&-; sleep 0.1; exec 0<&-; sleep 0.2'], piped);
  closed = watch(c);
  c.stdin.write(Buffer.alloc(1 << 20), written('large'));
  c.stdin.write('x', written('small'));
  await closed;
  log('killed');
  c = spawn('sh', ['-c', 'exec 1>&-; exec sleep 60'], piped);
  closed = watch(c);
  await pause();
  log(`${c.kill()} ${c.killed} ${c.kill()}`);
  await closed;
  log(`${c.kill()} ${c.killed}`);
  log('limits');
  for (const size of [5, 3, 2]) await output('printf "h\\303\\251\\303\\251"; sleep 0.2', size, 'utf8');
  for (const size of [3, 2]) await output('printf "h\\351\\351"; sleep 0.2', size, 'latin1');
  for (const size of [3, 2]) await output('printf abc; sleep 0.2', size, 'hex');
  for (const size of [3, 2]) await output('printf abc; sleep 0.2', size, 'base64');
})();
