'use strict';
// N109: paths that match patterns, sorted.
const fs = require('fs');
const path = require('path');
const { log, tmp } = require('./_lib');
(async () => {
  for (const f of ['a.js', 'b.ts', '.hid.js', 'src/m.js', 'src/n.txt', 'src/deep/o.js', 'src/deep/.p/q.js', 'z/x1.js', 'A.JS']) {
    fs.mkdirSync(path.dirname(tmp(f)), { recursive: true });
    fs.writeFileSync(tmp(f), '');
  }
  fs.symlinkSync('src', tmp('link'));
  const cwd = tmp('');
  for (const p of ['*.js', '**/*.js', '**', 'src/*', 'src/**', '{a,b}.*', '*.{js,ts}', '[ab].*', '[!a].*', '[a-c].*', '?.ts', 'src/**/o.js', '**/deep', './*.js', 'src/../*.js', '*/', '**/', '.*', 'nothing*', 'src', 'no', 'link/**', 'src/deep/', 'src/m.js/', '**/.p/**', '**/**/*.js', 'src/**/**', '{src,z}/*.{js,txt}', '*/*/*']) {
    const found = [];
    for await (const f of fs.promises.glob(p, { cwd })) found.push(f);
    log(p + ' ' + found.sort().join(' '));
  }
  const exclude = (name) => path.basename(name) === 'deep';
  log(fs.globSync('**/*.js', { cwd, exclude }).sort().join(' '));
  log(fs.globSync(['*.js', '*.ts', 'a.*'], { cwd }).sort().join(' '));
  await new Promise((resolve) => fs.glob('*.ts', { cwd }, (e, found) => { log('cb ' + e + ' ' + found); resolve(); }));
})();
