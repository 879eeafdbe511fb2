'use strict';
// N106: fork of a missing program: a channel that the other end has left.
const { log } = require('./_lib');
const { fork } = require('child_process');
const options = { execPath: 'no-such-program-here', stdio: ['ignore', 'ignore', 'ignore', 'ipc'] };
const c = fork('x.js', options);
log('connected ' + c.connected + ' pid ' + (c.pid ?? null));
for (const event of ['spawn', 'exit', 'message']) c.on(event, () => log(event));
c.on('disconnect', () => log('disconnect ' + c.connected));
c.on('error', (e) => log(`error ${e.code} ${c.exitCode}`));
c.on('close', () => {
  log('close ' + c.exitCode);
  setImmediate(() => setImmediate(() => {
    c.send({ a: 1 }, (e) => log('sent ' + e.code));
  }));
});
