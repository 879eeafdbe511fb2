'use strict';
// H33 H74 H75: the bytes of requests with bodies of each kind.
const { log } = require('./_lib');
const { listen, show } = require('./_http');
const http = require('http');
const net = require('net');
const { Readable, pipeline } = require('stream');
let then;
const server = net.createServer((s) => {
  let got = '';
  s.setEncoding('latin1');
  s.on('data', (d) => { got += d; });
  setTimeout(() => { log(show(got)); s.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'); s.on('close', () => then()); }, 80);
});
const kinds = {
  nothing: ['POST', {}, (r) => r.end()],
  once: ['POST', {}, (r) => r.end('all')],
  twice: ['POST', {}, (r) => { r.write('a'); r.write('b'); r.end(); }],
  later: ['PUT', {}, (r) => { r.write('a'); setTimeout(() => r.end('b'), 20); }],
  length: ['POST', { 'Content-Length': 2 }, (r) => { r.write('a'); r.end('b'); }],
  chunked: ['POST', { 'Transfer-Encoding': 'chunked' }, (r) => r.end('all')],
  empty: ['POST', {}, (r) => { r.write(''); r.end(''); }],
  get: ['GET', {}, (r) => r.end('body')],
  'get-length': ['GET', { 'Content-Length': 4 }, (r) => r.end('body')],
  'get-chunked': ['GET', { 'Transfer-Encoding': 'chunked' }, (r) => { r.write('bo'); r.end('dy'); }],
  delete: ['DELETE', {}, (r) => r.end('body')],
  options: ['OPTIONS', {}, (r) => r.end()],
  patch: ['PATCH', {}, (r) => r.end('p')],
  other: ['PROPFIND', {}, (r) => r.end()],
  flushed: ['POST', {}, (r) => { r.flushHeaders(); r.end('all'); }],
  corked: ['POST', {}, (r) => { r.cork(); r.write('a'); r.write('b'); r.uncork(); r.end(); }],
  piped: ['POST', {}, (r) => Readable.from([Buffer.from('one'), Buffer.from('two')]).pipe(r)],
  pipeline: ['POST', { 'Content-Length': 6 }, (r) => pipeline(Readable.from([Buffer.from('one'), Buffer.from('two')]), r, (e) => log('pipeline ' + (e ? e.code : 'ok')))],
  removed: ['POST', {}, (r) => { r.removeHeader('Connection'); r.removeHeader('Host'); r.end('x'); }],
  list: ['POST', { 'X-A': ['1', '2'], Cookie: ['a=1', 'b=2'] }, (r) => r.end('x')],
};
listen(server, (port) => {
  const names = Object.keys(kinds);
  then = () => {
    const name = names.shift();
    if (!name) return void server.close();
    const [method, headers, body] = kinds[name];
    const req = http.request({ port, host: '127.0.0.1', agent: false, method, path: '/' + name, headers });
    req.setHeader('Host', 'h');
    req.on('finish', () => log('finish ' + name));
    req.on('error', (e) => log('error ' + e.code));
    req.on('response', (res) => res.resume());
    body(req);
  };
  then();
});
