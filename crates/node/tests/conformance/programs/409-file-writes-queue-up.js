'use strict';
// N142: what has queued up is written as one request, and its callbacks are called one after the other.
const { log, tmp } = require('./_lib');
const fs = require('fs');
const events = (name, s) => {
  for (const event of ['open', 'ready', 'drain', 'finish', 'close']) s.on(event, () => log(name + ' ' + event));
  s.on('error', (e) => log(`${name} ${e.message}`));
  return s;
};
const written = (name) => (e) => {
  log('written ' + name + (e ? ' ' + e.code : ''));
  process.nextTick(() => log('tick ' + name));
  Promise.resolve().then(() => log('promise ' + name));
};
const path = tmp('file');
const w = events('w', fs.createWriteStream(path));
log([w.write('a', written('a')), w.write('b', written('b')), w.write('c', written('c'))].join(' '));
w.on('ready', () => {
  w.write('d', written('d'));
  w.write('e');
  w.cork();
  w.write('f', (e) => { written('f')(e); setTimeout(last, 20); });
  w.uncork();
  log('length ' + w.writableLength);
});
function last() {
  w.write('h', written('h'));
  w.write('i', written('i'));
  w.end('j', written('end'));
}
w.on('close', () => {
  log(fs.readFileSync(path, 'utf8'));
  const v = events('v', fs.createWriteStream(path));
  v.on('ready', () => { for (const n of ['v1', 'v2', 'v3']) v.write(n, written(n)); v.destroy(); });
  v.on('close', () => setImmediate(early));
});
function early() {
  const u = events('u', fs.createWriteStream(path));
  for (const n of ['u1', 'u2']) u.write(n, written(n));
  u.destroy();
  u.on('close', () => setImmediate(missing));
}
function missing() {
  const t = fs.createWriteStream('/nonexistent/file');
  for (const n of ['t1', 't2']) t.write(n, written(n));
  events('t', t);
  t.on('close', () => setImmediate(full));
}
function full() {
  const f = fs.createWriteStream('/dev/full');
  for (const n of ['f1', 'f2']) f.write(n, written(n));
  f.end(written('end'));
  events('f', f);
}
