'use strict';
// O6 O9: what the handler of a request enters stays for its body and for the next request of the connection.
const { log } = require('./_lib');
const { AsyncLocalStorage } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const http = require('http');
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
let n = 0;
const server = http.createServer((req, res) => {
  at('request'); als.enterWith('req' + (++n));
  req.on('data', (d) => { at('data-' + d); als.enterWith('data' + n); });
  req.on('end', () => { at('end'); setTimeout(() => { at('timer'); res.end('x', () => at('sent')); }, 5); });
  res.on('finish', () => at('finish')); res.on('close', () => at('close')); req.on('close', () => at('req-close'));
  process.nextTick(() => at('tick')); Promise.resolve().then(() => at('then'));
});
server.on('connection', (s) => { at('connection'); als.enterWith('conn'); });
function ask(s, next) {
  als.run(s, () => {
    const req = http.request({ port: server.address().port, host: '127.0.0.1', agent, method: 'POST', path: '/' }, (res) => {
      at('response'); als.enterWith('res-' + s); res.on('data', () => at('c-data')); res.on('end', () => { at('c-end'); }); res.on('close', () => { at('c-close'); setTimeout(() => als.exit(next), 20); });
    });
    req.on('socket', () => { at('socket'); als.enterWith('sock-' + s); });
    req.on('finish', () => at('sent-req'));
    req.write('a'); setTimeout(() => { at('ender'); req.end('b'); }, 30);
  });
}
server.listen(0, '127.0.0.1', () => ask('one', () => ask('two', () => { agent.destroy(); server.close(() => at('closed')); })));
