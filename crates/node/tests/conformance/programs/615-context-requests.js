'use strict';
// O9: requests that end in other ways than by an answer; continue, upgrade, timeouts, errors, aborts.
const { log } = require('./_lib');
const { AsyncLocalStorage } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const http = require('http'); const net = require('net');
const server = als.run('create', () => http.createServer());
als.run('on', () => {
  server.on('request', (q, s) => { at('request-' + q.url);
    if (q.url === '/slow') { q.on('close', () => at('q-close')); s.on('close', () => at('s-close')); q.on('aborted', () => at('aborted')); als.enterWith('slow'); return; }
    s.setTimeout(50, () => { at('s-timeout'); s.end('late'); });
  });
  server.on('checkContinue', (q, s) => { at('check'); als.enterWith('checked'); s.writeContinue(); q.resume(); q.on('end', () => { at('c-end'); s.end('ok'); }); });
  server.on('upgrade', (q, sock) => { at('upgrade'); als.enterWith('upgraded'); sock.write('HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'); sock.on('data', (d) => { at('up-' + d); sock.end(); }); });
  server.on('clientError', (e, sock) => { at('client-error'); sock.destroy(); });
  server.on('close', () => at('close'));
});
als.run('listen', () => server.listen(0, '127.0.0.1', () => als.exit(() => next())));
const port = () => server.address().port;
const steps = [
  () => als.run('c1', () => { const q = http.get({ port: port(), host: '127.0.0.1', path: '/slow', agent: false }); q.on('error', (e) => { at('q-error-' + e.code); setTimeout(next, 30); }); q.on('close', () => at('c-close')); setTimeout(() => als.run('destroyer', () => q.destroy()), 50); }),
  () => als.run('c2', () => { http.get({ port: port(), host: '127.0.0.1', path: '/t', agent: false }, (s) => { at('response'); s.resume(); s.on('end', () => { at('r-end'); }); s.on('close', () => { at('r-close'); setTimeout(next, 30); }); }); }),
  () => als.run('c3', () => { const q = http.request({ port: port(), host: '127.0.0.1', method: 'POST', headers: { Expect: '100-continue' }, agent: false }, (s) => { at('response'); s.resume(); s.on('close', () => setTimeout(next, 30)); }); q.on('continue', () => { at('continue'); als.enterWith('going'); q.end('x'); }); q.flushHeaders(); }),
  () => als.run('c4', () => { const q = http.get({ port: port(), host: '127.0.0.1', headers: { Connection: 'Upgrade', Upgrade: 'x' }, agent: false }); q.on('upgrade', (s, sock) => { at('c-upgrade'); als.enterWith('c-up'); sock.on('end', () => at('up-end')); sock.on('close', () => { at('up-close'); setTimeout(next, 30); }); sock.resume(); sock.write('hi'); }); }),
  () => als.run('c5', () => { const c = net.connect(port(), '127.0.0.1', () => { at('connected'); c.write('BAD\r\n\r\n'); }); c.on('close', () => { at('bad-close'); setTimeout(next, 30); }); c.on('error', () => {}); c.resume(); }),
  () => als.run('c6', () => { const q = http.get({ port: 1, host: '127.0.0.1', agent: false }); q.on('error', (e) => { at('refused-' + e.code); }); q.on('close', () => { at('refused-close'); setTimeout(next, 30); }); }),
  () => als.run('c7', () => { const q = http.get({ port: port(), host: '127.0.0.1', path: '/slow', agent: false, timeout: 40 }); q.on('timeout', () => { at('c-timeout'); als.enterWith('timed'); q.destroy(new Error('mine')); }); q.on('error', (e) => at('c-error-' + e.message)); q.on('close', () => { at('c7-close'); setTimeout(next, 30); }); }),
  () => als.run('c8', () => { const c = new AbortController(); const q = http.get({ port: port(), host: '127.0.0.1', path: '/slow', agent: false, signal: c.signal }); q.on('error', (e) => { at('abort-' + e.name); setTimeout(next, 30); }); setTimeout(() => als.run('aborter', () => c.abort()), 50); }),
  () => als.run('closer', () => server.close(() => at('closed'))),
];
function next() { als.exit(() => steps.shift()()); }
