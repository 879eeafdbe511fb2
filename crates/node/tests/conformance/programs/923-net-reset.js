'use strict';
// N151: a reset destroys a socket at once, with its writes; one that connects is reset when it is connected.
const { log } = require('./_lib');
const net = require('net');
const state = (c) => `${c.readyState} ${c.destroyed}`;
const watch = (c) => {
  for (const event of ['connect', 'ready', 'finish', 'end', 'close']) c.on(event, () => log(`${event} ${state(c)}`));
  c.on('error', (e) => log(`error ${e.code}`));
};
const step = (name, run) => new Promise((resolve) => {
  log(name);
  const server = net.createServer((k) => {
    k.resume();
    k.on('error', () => {});
  });
  server.listen(0, '127.0.0.1', () => {
    const c = net.connect(server.address().port, '127.0.0.1');
    watch(c);
    c.on('close', () => setTimeout(() => { server.close(); resolve(); }, 20));
    run(c);
  });
});
(async () => {
  await step('connected', (c) => c.on('connect', () => setImmediate(() => { c.resetAndDestroy(); log('called ' + state(c)); })));
  await step('in connect', (c) => c.on('connect', () => { c.resetAndDestroy(); log('called ' + state(c)); }));
  await step('connecting', (c) => { c.resetAndDestroy(); log('called ' + state(c)); });
  await step('writes', (c) => c.on('connect', () => {
    c.write('a', (e) => log(`first ${e ? e.code : 'fine'}`));
    c.write(Buffer.alloc(1 << 23), (e) => log(`second ${e ? e.code : 'fine'}`));
    c.resetAndDestroy();
    log('called ' + state(c));
  }));
  const c = new net.Socket();
  watch(c);
  c.resetAndDestroy();
  log('called ' + state(c));
})();
