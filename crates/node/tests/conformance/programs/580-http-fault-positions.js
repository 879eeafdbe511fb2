'use strict';
// H39 H41 H42 H45: where a fault is: parts that are too long, with other faults in them, numbers that are too large, and the answers.
const { log } = require('./_lib');
const { listen, raw, show } = require('./_http');
const http = require('http');
const server = http.createServer({ maxHeaderSize: 100 }, (req, res) => { req.on('error', () => {}); req.resume(); req.on('end', () => res.end()); });
server.on('clientError', (e, socket) => { log(`${e.code} ${e.bytesParsed} ${e.rawPacket.length}`); socket.end(e.code === 'HPE_HEADER_OVERFLOW' ? 'large' : 'bad'); });
const long = 'x'.repeat(100);
const ext = 'x'.repeat(17000);
const head = (text) => `POST / HTTP/1.1\r\nHost: h\r\n${text}`;
const chunk = (text) => head(`Transfer-Encoding: chunked\r\n\r\n${text}`);
const cases = {
  url: `GET /${long} HTTP/1.1\r\n`,
  'url without version': `GET /${long}\r\n`,
  'url with host': `GET http://${long}/a HTTP/1.1\r\n`,
  'url bad': `GET /${long}\x01 HTTP/1.1\r\n`,
  'url open': `GET /${long}`,
  name: head(`${long}: a\r\n\r\n`),
  'name bad': head(`${long}\x01: a\r\n\r\n`),
  'name blank': head(`${long} : a\r\n\r\n`),
  'name open': head(long),
  value: head(`a: ${long}\r\n\r\n`),
  'value blanks': head(`a: b${' '.repeat(100)}\r\n\r\n`),
  'value bad': head(`a: ${long}\x01b\r\n\r\n`),
  'value lf': head(`a: ${long}\n\r\n`),
  'value open': head(`a: ${long}`),
  'many values': head('ab: cd\r\n'.repeat(30)),
  length: head(`Content-Length: ${'0'.repeat(100)}3\r\n\r\nabc`),
  'length bad': head(`Content-Length: ${'0'.repeat(100)}x\r\n\r\n`),
  'length too large': head('Content-Length: 18446744073709551616\r\n\r\n'),
  coding: head(`Transfer-Encoding: ${long}, chunked\r\n\r\n`),
  'coding bad': head(`Transfer-Encoding: ${long}\x01\r\n\r\n`),
  'size too large': chunk('10000000000000000\r\n'),
  'extension name': chunk(`3;${ext}=a\r\n`),
  'extension value': chunk(`3;a=${ext};b\r\n`),
  'extension quoted': chunk(`3;a="${ext}";b\r\n`),
  'extension bad': chunk(`3;${ext} \r\n`),
  'extension lf': chunk(`3;${ext}\n`),
  'extension open': chunk(`3;${ext}`),
  trailer: chunk(`0\r\na: ${long}\r\n\r\n`),
};
listen(server, (port) => {
  const next = (names) => {
    if (!names.length) return void server.close(() => log('closed'));
    log(names[0]);
    raw(port, cases[names[0]], (text) => { log(show(text)); next(names.slice(1)); });
  };
  next(Object.keys(cases));
});
