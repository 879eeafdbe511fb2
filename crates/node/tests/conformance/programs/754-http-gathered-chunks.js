'use strict';
// H33: what is written to a chunked body while the response is corked is one chunk, with one callback after the other.
const { log } = require('./_lib');
const { listen, raw, show } = require('./_http');
const http = require('http');
const server = http.createServer((req, res) => {
  res.sendDate = false;
  const told = (name) => (e) => log(name + ' ' + (e ? e.code : 'ok'));
  res.write('a', told('a'));
  log('length-' + (res.writableLength > 0) + ' corked-' + res.writableCorked);
  res.write('', told('empty'));
  res.write('bc', told('bc'));
  res.on('finish', () => log('finish'));
  setTimeout(() => {
    res.cork();
    res.write('d', told('d'));
    res.cork();
    res.write('e', told('e'));
    res.uncork();
    log('corked-' + res.writableCorked);
    setTimeout(() => { res.uncork(); res.cork(); res.write('f', told('f')); res.end('g', told('g')); log('ended'); }, 50);
  }, 50);
});
listen(server, (port) => raw(port, 'GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n', (t) => { log(show(t)); server.close(); }));
