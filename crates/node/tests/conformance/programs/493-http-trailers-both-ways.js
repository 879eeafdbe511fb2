'use strict';
// H14 H31: trailers of requests and responses, declared or not, repeated, with and without chunks, and in HTTP/1.0.
const { log } = require('./_lib');
const { listen, raw, show } = require('./_http');
const http = require('http');
const server = http.createServer((req, res) => {
  res.sendDate = false;
  log(`head${req.url} ${JSON.stringify(req.trailers)} ${req.headers.trailer}`);
  req.on('data', (d) => log(`data ${d} ${req.rawTrailers.length}`));
  req.on('end', () => {
    log('end ' + JSON.stringify(req.trailers) + ' ' + JSON.stringify(req.rawTrailers));
    if (req.url === '/length') res.setHeader('Content-Length', 2);
    res.write('ok');
    res.addTrailers({ 'X-Echo': req.trailers['x-sum'] || 'none', 'X-List': ['a', 'b'] });
    res.addTrailers([['X-Second', '2']]);
    res.end();
  });
});
listen(server, (port) => {
  const post = (path, then) => {
    const req = http.request({ port, host: '127.0.0.1', agent: false, path, method: 'POST', headers: { Trailer: 'X-Sum' } }, (res) => {
      res.on('data', (d) => log(`body ${d} ${JSON.stringify(res.trailers)}`));
      res.on('end', () => { log('trailers ' + JSON.stringify(res.trailers) + ' ' + JSON.stringify(res.rawTrailers)); });
      res.on('close', () => then());
    });
    req.write('one');
    req.addTrailers({ 'X-Sum': '3' });
    req.addTrailers({ 'X-Sum': '4', 'Set-Cookie': 'a' });
    req.end('two');
  };
  const bytes = (text, then) => { const c = raw(port, text, (t) => { log(show(t)); then(); }); return c; };
  const chunks = (version, extra) => `PUT /${version} HTTP/${version}\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n${extra}\r\n2\r\nab\r\n0\r\nX-Sum: 1\r\nX-Sum: 2\r\nHost: twice\r\n\r\n`;
  post('/plain', () => post('/length', () => bytes(chunks('1.1', ''), () => bytes(chunks('1.0', 'TE: chunked\r\n'), () =>
    bytes(chunks('1.0', ''), () => server.close(() => log('closed')))))));
});
