'use strict';
// N109: a watched tree: directories that were there, and those that appear.
const fs = require('fs');
const { log, tmp } = require('./_lib');
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
(async () => {
  fs.mkdirSync(tmp('dir/sub'), { recursive: true });
  fs.writeFileSync(tmp('dir/sub/old'), 'a');
  let seen = new Set();
  const w = fs.watch(tmp('dir'), { recursive: true }, (type, file) => seen.add(file));
  const show = async (what) => { await sleep(200); log(what + ' ' + [...seen].sort().join(', ')); seen = new Set(); };
  await sleep(100);
  fs.writeFileSync(tmp('dir/sub/new'), 'text');
  await show('create');
  fs.mkdirSync(tmp('dir/more'));
  await show('mkdir');
  fs.writeFileSync(tmp('dir/more/deep'), 'text');
  await show('deep');
  fs.unlinkSync(tmp('dir/more/deep'));
  await show('unlink');
  w.close();
})();
