'use strict';
// N93: directories made and removed with what is above and in them, read with types.
const fs = require('fs');
const { log, tmp } = require('./_lib');
const root = tmp('');
const cut = (x) => String(x).replaceAll(root, '');
const p = fs.promises;
const said = (name) => (e) => log(name + '|' + e.code + '|' + cut(e.message));
(async () => {
  const deep = { recursive: true };
  log('made|' + cut(await p.mkdir(tmp('a/b/c'), deep)));
  log('made|' + cut(await p.mkdir(tmp('a/b/c'), deep)));
  log('made|' + cut(await p.mkdir(tmp('a/b/./d//e/'), deep)));
  fs.writeFileSync(tmp('a/file'), 'x'); fs.writeFileSync(tmp('a/b/1'), ''); fs.symlinkSync('file', tmp('a/link'));
  await p.mkdir(tmp('a/file'), deep).catch(said('file'));
  await p.mkdir(tmp('a/file/x/y'), deep).catch(said('below'));
  await p.mkdir(tmp('m'), { mode: 0o700 });
  log('mode|' + ((await p.stat(tmp('m'))).mode & 0o777).toString(8));
  const entries = await p.readdir(tmp('a'), { withFileTypes: true });
  for (const e of entries) log(['entry', e.name, cut(e.parentPath), e.isFile(), e.isDirectory(), e.isSymbolicLink()].join('|'));
  await new Promise((resolve) => fs.readdir(tmp('a'), { withFileTypes: true, recursive: true }, (_, all) => {
    for (const e of all) log(['deep', cut(e.parentPath), e.name].join('|'));
    resolve();
  }));
  await p.rm(tmp('a/link')); log('link|' + fs.existsSync(tmp('a/file')));
  await p.rm(tmp('a'), deep); log('gone|' + !fs.existsSync(tmp('a')));
  await p.rm(tmp('a'), deep).catch(said('again'));
  await p.rm(tmp('a'), { force: true, recursive: true });
  const made = await p.mkdtemp(tmp('t-')); log('temp|' + cut(made).length + '|' + fs.statSync(made).isDirectory());
  const dir = await p.opendir(tmp('m')); log('dir|' + cut(dir.path) + '|' + await dir.read());
  await dir.close(); try { await dir.read(); } catch (e) { said('read')(e); } await dir.close().catch(said('close'));
  fs.writeFileSync(tmp('m/one'), '');
  for await (const e of await p.opendir(tmp('m'))) log('each|' + e.name + '|' + e.isFile());
  log('real|' + cut(await p.realpath(tmp('m/../m/./one'))));
})();
