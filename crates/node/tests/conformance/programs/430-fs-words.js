'use strict';
// N93: the errors of file operations, as promises and as callbacks, in Node's words.
const fs = require('fs');
const { log, tmp } = require('./_lib');
const at = (name) => tmp(name);
const root = tmp('');
const say = (name, error, value) => log(name + '|' + (error
  ? (error.code + '|' + error.message).replaceAll(root, '')
  : String(value).replaceAll(root, '')));
const p = fs.promises;
const X = fs.constants;
const trials = {
  access: ['no', X.F_OK], lstat: ['no'], readlink: ['no'], readlinkFile: ['file'], chmod: ['no', 0o600],
  truncate: ['no', 1], truncateDir: ['', 1], mkdir: ['file'], mkdirDeep: ['a/b'], rm: ['no'], rmForce: ['no', { force: true }],
  rmDir: ['dir'], rmUnder: ['file/x'], rmdir: ['file'], readdir: ['no'], readdirFile: ['file'], opendir: ['no'], opendirFile: ['file'],
  open: ['no', 'r'], openExclusive: ['file', 'wx'], openDir: ['', 'w'], writeFile: ['no/x', 'a'], writeFileExclusive: ['file', 'a', { flag: 'wx' }],
  appendFile: ['no/x', 'a'], readFile: ['no'], readFileDir: [''], unlink: ['no'], utimes: ['no', 1, 1],
};
const two = { symlink: ['no', 'file'], link: ['no', 'q'], rename: ['no', 'q'], copyFile: ['no', 'q'] };
const of = (name) => name.replace(/(?<=[a-z])(File|Deep|Force|Dir|Under|Exclusive)+$/, (m) => ['writeFile', 'appendFile', 'readFile', 'copyFile'].find((f) => name.startsWith(f)) ? 'File' : '');
(async () => {
  fs.writeFileSync(at('file'), 'abc'); fs.mkdirSync(at('dir'));
  for (const [name, [path, ...rest]] of Object.entries(trials)) {
    await p[of(name)](at(path), ...rest).then((v) => say(name, null, v), (e) => say(name, e));
    await new Promise((resolve) => fs[of(name)](at(path), ...rest, (e, v) => { say(name + '.cb', e, v); resolve(); }));
  }
  for (const [name, [from, to]] of Object.entries(two)) {
    await p[name](at(from), at(to)).then((v) => say(name, null, v), (e) => say(name, e));
    await new Promise((resolve) => fs[name](at(from), at(to), (e, v) => { say(name + '.cb', e, v); resolve(); }));
  }
  await p.realpath(at('no')).catch((e) => say('realpath', e));
  const stopped = AbortSignal.abort();
  await p.readFile(at('file'), { signal: stopped }).catch((e) => log('aborted|' + e.name + '|' + e.code + '|' + e.message));
  await p.writeFile(at('file'), 'x', { signal: stopped }).catch((e) => log('aborted|' + e.name + '|' + e.code + '|' + e.message));
})();
