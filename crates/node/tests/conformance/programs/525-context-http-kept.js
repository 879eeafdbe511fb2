'use strict';
// O9: two requests on one kept connection, each with its own store; the server's side has that of listen.
const { log, block } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const http = require('http');
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
const server = als.run('create', () => http.createServer((req, res) => {
  at('request-' + req.url);
  als.run('handler' + req.url, () => { req.on('data', (d) => at('body-' + d)); req.on('end', () => { at('req-end'); setTimeout(() => { at('answer'); res.end('ok' + req.url, () => at('res-cb')); }, 5); });
  res.on('finish', () => at('finish')); });
}));
function ask(s, next) {
  als.run(s, () => {
    const req = http.request({ port: server.address().port, host: '127.0.0.1', agent, path: '/' + s, method: 'POST' }, (res) => {
      at('response'); res.on('data', (d) => at('data-' + d)); res.on('end', () => { at('end'); setImmediate(() => als.exit(next)); });
    });
    req.on('finish', () => at('sent')); req.end('b' + s, () => at('end-cb'));
  });
}
als.run('listen', () => server.listen(0, '127.0.0.1', () => { at('listening'); als.exit(() => ask('one', () => ask('two', () => { agent.destroy(); server.close(() => at('closed')); }))); }));
