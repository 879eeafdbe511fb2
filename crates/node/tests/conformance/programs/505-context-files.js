'use strict';
// O9: file streams, handles and callbacks inside callbacks.
const { log, block, tmp } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const fs = require('fs');
const file = tmp('f');
als.run('write', () => {
  const w = fs.createWriteStream(file);
  als.run('listeners', () => { w.on('open', () => at('open')); w.on('finish', () => at('finish')); w.on('close', () => { at('w-close'); als.exit(read); }); });
  als.run('w1', () => w.write('one', () => at('written-1')));
  als.run('w2', () => w.write('two', () => at('written-2')));
  als.run('ender', () => w.end());
});
function read() {
  const r = als.run('read', () => fs.createReadStream(file));
  als.run('on', () => { r.on('ready', () => at('ready')); r.on('data', (d) => at('data-' + d)); r.on('end', () => at('end')); r.on('close', () => { at('r-close'); als.exit(nested); }); });
}
function nested() {
  als.run('open', () => fs.open(file, (e, fd) => {
    at('opened');
    als.run('inner', () => fs.read(fd, Buffer.alloc(3), 0, 3, 0, () => { at('read'); fs.close(fd, () => { at('closed'); als.exit(handles); }); }));
  }));
}
function handles() {
  als.run('h', async () => {
    const h = await fs.promises.open(file);
    at('handle');
    als.enterWith('h2');
    await h.readFile();
    at('read-file');
    await h.close();
    at('handle-closed');
  }).then(() => at('done'));
}
