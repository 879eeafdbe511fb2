'use strict';
// O9: what the parts of a request and its answer run with.
const { log, block, tmp } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const http = require('http');
const server = als.run('made', () => http.createServer((q, s) => {
  at('request-' + q.url);
  let body = '';
  als.run('q' + q.url.slice(1), () => {
    q.on('data', (d) => { at('data'); body += d; });
    q.on('end', () => { at('end'); s.end(body, () => at('sent')); });
    s.on('finish', () => at('finish'));
    s.on('close', () => at('close'));
  });
}));
server.on('connection', () => at('connection'));
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
const ask = (n, next) => als.run('ask' + n, () => {
  const q = http.request({ port: server.address().port, host: '127.0.0.1', path: '/' + n, method: 'POST', agent }, (s) => {
    at('response');
    s.on('data', (d) => at('body-' + d));
    s.on('end', () => at('over'));
    s.on('close', () => { at('closed'); setImmediate(() => als.exit(next)); });
  });
  q.on('socket', () => at('socket'));
  q.on('finish', () => at('asked'));
  q.end('x' + n);
});
als.run('listen', () => server.listen(0, '127.0.0.1', () => als.exit(() => ask(1, () => ask(2, () => { agent.destroy(); als.run('closer', () => server.close(() => at('server-closed'))); })))));
