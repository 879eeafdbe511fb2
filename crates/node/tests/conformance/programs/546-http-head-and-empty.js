'use strict';
// H25 H79: answers without a body, both ends, on one kept connection: HEAD, 204, 304, lengths that lie, a late HEAD.
const { log } = require('./_lib');
const { listen } = require('./_http');
const http = require('http');
const server = http.createServer((req, res) => {
  const [, code, how] = req.url.split('/');
  res.statusCode = Number(code);
  res.sendDate = false;
  if (how === 'length') res.setHeader('Content-Length', 5);
  if (how === 'chunked') res.setHeader('Transfer-Encoding', 'chunked');
  if (how === 'written') log('write ' + res.write('hello', () => log('written')));
  res.on('finish', () => log('finish ' + res.writableFinished));
  res.end(how === 'none' ? undefined : 'hello');
});
server.on('connection', () => log('connection'));
listen(server, (port) => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const list = [];
  for (const method of ['HEAD', 'GET']) for (const code of [200, 204, 304]) for (const how of ['none', 'length', 'chunked', 'written']) if (method === 'HEAD' || code !== 200) list.push([method, `/${code}/${how}`]);
  list.push(['GET', '/200/length']);
  const next = () => {
    const item = list.shift();
    if (!item) { agent.destroy(); return void server.close(() => log('closed')); }
    const [method, path] = item;
    const req = http.request({ port, host: '127.0.0.1', agent, path, method }, (res) => {
      const h = res.headers;
      log(`${method}${path} ${res.statusCode} length-${h['content-length']} coding-${h['transfer-encoding']} ${h.connection}`);
      let text = '';
      res.on('data', (d) => { text += d; });
      res.on('end', () => log('end ' + text));
    });
    req.on('error', (e) => log('error ' + e.code));
    req.on('close', () => setTimeout(next, 20));
    req.end();
  };
  next();
});
