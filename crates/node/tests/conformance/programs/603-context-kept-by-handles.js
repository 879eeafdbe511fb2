'use strict';
// O6 O9: ports, datagram sockets, pipes of children and signals keep what a listener enters.
const { log } = require('./_lib');
const { AsyncLocalStorage } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const { MessageChannel, Worker } = require('worker_threads');
const dgram = require('dgram');
const { spawn } = require('child_process');
const { port1, port2 } = als.run('ch', () => new MessageChannel());
port2.on('message', (m) => { at('m-' + m); als.enterWith('m' + m); if (m === 3) { port2.close(); } });
port2.on('close', () => { at('p-close'); setTimeout(() => als.exit(udp), 20); });
port1.postMessage(1); port1.postMessage(2); setTimeout(() => port1.postMessage(3), 20);
function udp() {
  const u = als.run('u', () => dgram.createSocket('udp4'));
  u.on('message', (m) => { at('d-' + m); als.enterWith('d' + m); if (String(m) === '2') u.close(); else u.send('2', u.address().port, '127.0.0.1'); });
  u.on('close', () => { at('u-close'); setTimeout(() => als.exit(child), 20); });
  u.bind(0, '127.0.0.1', () => { at('bound'); als.enterWith('bound'); u.send('1', u.address().port, '127.0.0.1'); });
}
function child() {
  const c = als.run('c', () => spawn('cat'));
  c.on('spawn', () => { at('spawn'); als.enterWith('spawned'); });
  let k = 0;
  c.stdout.on('data', (d) => { at('out-' + d); als.enterWith('out' + d); if (++k === 1) c.stdin.write('b'); else c.stdin.end(); });
  c.stdout.on('end', () => at('out-end'));
  c.on('close', () => als.exit(signals));
  setTimeout(() => c.stdin.write('a'), 20);
}
function signals() {
  let k = 0;
  const t = setInterval(() => {}, 1000);
  als.run('s', () => process.on('SIGWINCH', function f() { at('sig'); als.enterWith('sig' + k); if (++k < 3) setTimeout(() => process.kill(process.pid, 'SIGWINCH'), 10); else { process.off('SIGWINCH', f); clearInterval(t); } }));
  process.kill(process.pid, 'SIGWINCH');
}
