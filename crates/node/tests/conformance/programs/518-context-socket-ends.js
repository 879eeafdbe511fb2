'use strict';
// O9: time-outs, errors, refused connections, paused sockets, and the output of a command.
const { log } = require('./_lib');
const { AsyncLocalStorage } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const net = require('net');
const cp = require('child_process');
const server = net.createServer((s) => { als.run('srv', () => { s.setTimeout(20, () => { at('timeout'); s.destroy(new Error('x')); }); s.on('error', () => at('srv-error')); s.on('close', () => { at('srv-close'); als.run('closer', () => server.close()); }); }); });
als.run('on-close', () => server.on('close', () => { at('server-close'); als.exit(refused); }));
server.listen(0, '127.0.0.1', () => als.run('cli', () => { const c = net.connect(server.address().port, '127.0.0.1'); als.run('l', () => { c.on('close', () => at('cli-close')); c.on('error', () => at('cli-error')); c.resume(); }); }));
function refused() {
  const c = als.run('conn', () => net.connect(1, '127.0.0.1'));
  als.run('err', () => { c.on('error', () => at('refused')); c.on('close', () => { at('refused-close'); als.exit(paused); }); });
}
function paused() {
  const srv = net.createServer((s) => { als.run('sender', () => s.end('a')); });
  als.run('lst', () => srv.listen(0, '127.0.0.1', () => {
    const c = als.run('c2', () => net.connect(srv.address().port, '127.0.0.1'));
    als.run('r', () => { c.pause(); setTimeout(() => { als.run('resumer', () => { c.on('data', (d) => at('d-' + d)); c.resume(); }); }, 30); c.on('end', () => { at('e'); srv.close(); als.exit(exec); }); });
  }));
}
function exec() {
  als.run('ex', () => { const c = cp.exec('echo hi', () => { at('exec-cb'); }); als.run('o', () => { c.stdout.on('data', () => at('exec-data')); c.on('exit', () => at('exec-exit')); }); });
}
