'use strict';
// H13 H14: how many header lines and trailers are kept: in batches of 31, and by the limit of the server.
const { log } = require('./_lib');
const { listen, raw } = require('./_http');
const http = require('http');
const server = http.createServer((req, res) => {
  req.resume();
  req.on('end', () => {
    const [headers, trailers] = [Object.keys(req.headers).length, Object.keys(req.trailers).length];
    log(`${req.rawHeaders.length / 2} ${headers} ${req.rawTrailers.length / 2} ${trailers} ${req.headers.last}`);
    for (let i = 0; i < 40; i++) res.setHeader('h' + i, 'v');
    res.end();
  });
});
const lines = (count) => Array.from({ length: count }, (_, i) => `a${i}: b\r\n`).join('');
const cases = [[1, 5], [3, 31], [3, 32], [31, 40], [32, 80], [40, 63], [62, 100], [1000, 1100], [0, 1100]];
listen(server, (port) => {
  const next = () => {
    const [limit, count] = cases.shift() || [];
    if (count === undefined) return client(port);
    server.maxHeadersCount = limit;
    const fields = lines(count - 4);
    raw(port, `POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n${fields}last: l\r\n\r\n0\r\n${fields}\r\n`, next);
  };
  next();
});
function client(port) {
  const req = http.get({ port, host: '127.0.0.1', agent: false }, (res) => { log(`client ${res.rawHeaders.length / 2} ${Object.keys(res.headers).length}`); res.resume(); });
  req.maxHeadersCount = 5;
  req.on('close', () => server.close(() => log('closed')));
}
