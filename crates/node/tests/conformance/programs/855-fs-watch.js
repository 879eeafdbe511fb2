'use strict';
// N109: watched directories and files: names, kinds, errors, close.
const fs = require('fs');
const path = require('path');
const { log, tmp } = require('./_lib');
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
// Repeated reports of one kind and name count once.
const watched = (name, options) => {
  let seen = [];
  const w = fs.watch(tmp(name), options, (type, file) => { const t = type + ' ' + file; if (seen.at(-1) !== t) seen.push(t); });
  w.on('close', () => log(name + ' close'));
  return { w, show: async (what) => { await sleep(150); log(what + ' ' + seen.join(', ')); seen = []; } };
};
(async () => {
  fs.mkdirSync(tmp('dir'));
  const d = watched('dir');
  fs.writeFileSync(tmp('dir/a'), 'text');
  await d.show('create');
  fs.appendFileSync(tmp('dir/a'), 'more');
  await d.show('append');
  fs.renameSync(tmp('dir/a'), tmp('dir/b'));
  await d.show('rename');
  fs.chmodSync(tmp('dir/b'), 0o600);
  await d.show('chmod');
  fs.mkdirSync(tmp('dir/sub'));
  await d.show('mkdir');
  fs.writeFileSync(tmp('dir/sub/deep'), '');
  await d.show('deep');
  fs.unlinkSync(tmp('dir/b'));
  await d.show('unlink');
  d.w.close();
  d.w.close();
  log('closing');
  await sleep(50);
  fs.writeFileSync(tmp('dir/late'), '');
  await d.show('late');
  fs.writeFileSync(tmp('file'), '');
  const f = watched('file');
  fs.appendFileSync(tmp('file'), 'more');
  await f.show('append');
  f.w.close();
  await sleep(20);
  try { fs.watch(tmp('no')); } catch (e) { log(e.code + ' ' + e.syscall + ' ' + e.message.replace(tmp(''), '')); }
  const controller = new AbortController();
  watched('dir', { signal: controller.signal });
  controller.abort();
  log('aborted');
  await sleep(20);
  watched('dir', { signal: AbortSignal.abort() });
  log('aborted before');
  await sleep(20);
  watched('dir', { persistent: false });
  watched('file').w.unref();
})();
