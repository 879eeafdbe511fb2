'use strict';
// H69 H72: the timeout of an agent: told to requests that wait, silent for free sockets; what the peer's Keep-Alive says.
const { log } = require('./_lib');
const { listen } = require('./_http');
const http = require('http');
const count = (o) => Object.values(o).reduce((n, l) => n + l.length, 0);
const hints = { '/one': 'timeout=1', '/two': 'timeout=2', '/zero': 'timeout=0', '/max': 'max=5', '/words': 'timeout=x' };
const server = http.createServer((req, res) => {
  if (hints[req.url]) res.setHeader('Keep-Alive', hints[req.url]);
  if (req.url === '/slow') return void setTimeout(() => res.end('x'), 400);
  res.end('x');
});
listen(server, (port) => {
  const agent = new http.Agent({ keepAlive: true, timeout: 150 });
  const get = (path, then, on = agent) => {
    const req = http.get({ port, host: '127.0.0.1', agent: on, path }, (res) => { log('response' + path + ' reused-' + req.reusedSocket); res.resume(); });
    req.on('timeout', () => log('timeout' + path));
    req.on('error', (e) => log('error' + path + ' ' + e.code));
    req.on('close', () => setTimeout(() => { log('free-' + (on ? count(on.freeSockets) : 'none')); then(); }, 50));
    return req;
  };
  const rest = [];
  const next = () => rest.shift()();
  rest.push(
    () => setTimeout(() => { log('idle free-' + count(agent.freeSockets)); next(); }, 300),
    () => get('/again', next),
    () => { agent.destroy(); next(); },
    ...['/one', '/two', '/zero', '/max', '/words'].map((path) => () => { const one = new http.Agent({ keepAlive: true }); get(path, () => { one.destroy(); next(); }, one); }),
    () => { const one = new http.Agent({ keepAlive: true }); get('/two', () => setTimeout(() => { log('hint free-' + count(one.freeSockets)); one.destroy(); next(); }, 1200), one); },
    () => { const r = get('/slow', next, false); r.setTimeout(100, () => { log('own'); r.destroy(); }); },
    () => { server.close(() => log('closed')); server.closeAllConnections(); },
  );
  get('/slow', next);
});
