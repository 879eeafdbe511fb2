'use strict';
// O9: sockets that fail, fill up, time out, stay half open or are reset.
const { log } = require('./_lib');
const { AsyncLocalStorage } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const net = require('net');
const steps = [
  () => { const s = als.run('s', () => net.createServer()); als.run('e', () => s.on('error', (e) => { at('error-' + e.code); go(); })); const t = net.createServer().listen(0, '127.0.0.1', () => { als.run('listen', () => s.listen(t.address().port, '127.0.0.1')); setTimeout(() => t.close(), 20); }); },
  () => { const srv = net.createServer((c) => { c.pause(); setTimeout(() => { c.resume(); }, 60); c.on('end', () => c.end()); }); srv.listen(0, '127.0.0.1', () => { const c = als.run('c', () => net.connect(srv.address().port, '127.0.0.1')); als.run('on', () => { c.on('drain', () => { at('drain'); als.enterWith('drained'); c.end(() => at('ended')); }); c.on('finish', () => at('finish')); c.on('end', () => at('end')); c.on('close', () => { at('close'); srv.close(() => { at('srv-close'); go(); }); }); }); c.resume(); als.run('w', () => c.write(Buffer.alloc(1 << 23), () => at('written'))); }); },
  () => { const srv = net.createServer((c) => { als.enterWith('srv'); c.setTimeout(30, () => { at('timeout'); als.enterWith('timed'); c.end('bye'); }); c.on('close', () => at('c-close')); c.resume(); }); als.run('l', () => srv.listen(0, '127.0.0.1', () => { const c = als.run('c', () => net.connect(srv.address().port, '127.0.0.1')); c.on('data', (d) => { at('data-' + d); }); c.on('end', () => at('end')); c.on('close', () => { at('close'); als.run('cl', () => srv.close(() => { at('closed'); go(); })); }); })); },
  () => { const srv = net.createServer({ allowHalfOpen: true }, (c) => { c.on('end', () => { at('half'); als.enterWith('half2'); setTimeout(() => { at('answer'); c.end('x'); }, 10); }); c.resume(); }); srv.listen(0, '127.0.0.1', () => { const c = als.run('hc', () => net.connect(srv.address().port, '127.0.0.1')); als.run('he', () => c.end('q', () => at('end-cb'))); c.on('data', (d) => { at('d-' + d); }); c.on('close', () => { at('hclose'); srv.close(go); }); }); },
  () => { const srv = net.createServer((c) => { als.run('reset', () => { c.on('error', (e) => at('srv-' + e.code)); c.on('close', () => at('srv-closed')); }); c.resume(); setTimeout(() => cl.resetAndDestroy(), 20); }); let cl; srv.listen(0, '127.0.0.1', () => { cl = als.run('rc', () => net.connect(srv.address().port, '127.0.0.1')); cl.on('close', () => { at('cl-close'); srv.close(() => go()); }); }); },
];
function go() { setTimeout(() => als.exit(() => { const s = steps.shift(); if (s) s(); }), 30); }
go();
