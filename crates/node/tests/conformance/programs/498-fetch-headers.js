'use strict';
// H91 H11: the headers of a response: order, joined values, cookies, blanks, latin1; what a request may not say.
const { log } = require('./_lib');
const { listen } = require('./_http');
const net = require('net');
const answers = [
  'HTTP/1.1 200 OK\r\nZ-Last: z\r\nA-First: a\r\nX-Many: 1\r\nx-many: 2\r\nSet-Cookie: a=1\r\nB: b\r\nset-cookie: b=2\r\nX-MANY:   3\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 299 Mine Own\r\nX-Latin: caf\xe9\r\nEmpty:\r\nContent-Length: 0\r\n\r\n',
  'HTTP/1.0 200\r\nX: 1\r\n\r\ntill the end',
  'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok and more',
  'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-Trailer: t\r\n\r\n',
  'HTTP/1.1 204 No Content\r\nX: 1\r\n\r\n',
  'HTTP/1.1 205 Reset\r\nContent-Length: 0\r\n\r\n',
  'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok',
  'HTTP/1.1 200 OK\r\nContent-Length: nonsense\r\n\r\nok',
  'nonsense',
  'HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
];
const server = net.createServer((s) => { s.on('error', () => {}); s.once('data', () => s.end(answers.shift(), 'latin1')); });
listen(server, async (port) => {
  const url = `http://127.0.0.1:${port}/`;
  while (answers.length) {
    try {
      const r = await fetch(url);
      log(`${r.status} ${JSON.stringify(r.statusText)} ${r.ok} ${JSON.stringify([...r.headers])}`);
      log(`cookies ${JSON.stringify(r.headers.getSetCookie())} many ${r.headers.get('X-Many')} body ${r.body === null} ${JSON.stringify(await r.text())}`);
    } catch (e) { log([e.name, e.message, e.cause && (e.cause.code || e.cause.message)].join(' ')); }
  }
  for (const [name, value] of [['a b', '1'], ['x', 'a\nb'], ['x', '\u0101'], ['', '1'], ['Transfer-Encoding', 'chunked'], ['Keep-Alive', '1'], ['Upgrade', 'x'], ['Expect', '100-continue'], ['Connection', 'weird'], ['Content-Length', 'x'], ['Connection', 'close, x'], ['Content-Length', '1']]) {
    const tell = (e) => log([name, e.name, e.cause ? e.cause.code || e.cause.message : '-'].join(' '));
    try { await fetch(url, { headers: { [name]: value } }).then(() => log(name + ' ok'), tell); } catch (e) { tell(e); }
  }
  server.close();
});
