'use strict';
// N98 N142: the callbacks of writes and ends of a socket that is closed before it is connected.
const { log, tmp } = require('./_lib');
const net = require('net');
const told = (name) => (e) => {
  log(`told ${name} ${e ? `${e.code} ${e.message}`.replace(tmp(''), '') : 'ok'}`);
  process.nextTick(() => log('tick ' + name));
};
const watch = (name, s) => {
  for (const event of ['connect', 'ready', 'end', 'drain', 'finish']) s.on(event, () => log(name + ' ' + event));
  s.on('close', (e) => { log(`${name} close ${e === true}`); setTimeout(next, 10); });
  s.on('error', (e) => log(`${name} error ${e.code} ${e.message}`.replace(tmp(''), '')));
  return s;
};
const connected = (name) => watch(name, net.connect(tmp('s')));
const write = (s, ...names) => { for (const n of names) s.write(n, told(n)); };
const cases = [
  () => { const s = connected('write'); write(s, 'x', 'y'); s.destroy(); },
  () => { const s = connected('write-error'); write(s, 'x', 'y'); s.destroy(new Error('boom')); },
  () => { const s = connected('end'); s.end(told('end')); s.destroy(); },
  () => { const s = connected('end-chunk'); s.end('data', told('end')); s.destroy(); },
  () => { const s = connected('tick'); write(s, 'x'); process.nextTick(() => s.destroy()); },
  () => { const s = net.connect(tmp('s')); write(s, 'x'); watch('listens-later', s); s.destroy(); },
  () => { const s = watch('missing', net.connect(tmp('none'))); write(s, 'x', 'y'); s.end(told('end')); },
  () => { const s = watch('refused', net.connect(1, '127.0.0.1')); write(s, 'x'); s.end(told('end')); },
  () => { const s = connected('after'); s.destroy(); write(s, 'x'); s.end(told('end')); },
  () => { const s = watch('never', new net.Socket()); write(s, 'x'); s.end(told('end')); },
  () => { const s = watch('never-end', new net.Socket()); s.end(told('end')); setTimeout(next, 10); },
  () => { const s = connected('connected'); s.on('connect', () => { write(s, 'x', 'y'); s.end(told('end')); s.destroy(); }); },
  () => { const s = connected('connected-end'); s.on('connect', () => { s.end(told('end')); s.destroy(); }); },
];
const server = net.createServer((s) => { s.on('error', () => {}); s.resume(); });
function next() {
  const step = cases.shift();
  if (!step) return server.close();
  log('--');
  step();
}
server.listen(tmp('s'), next);
