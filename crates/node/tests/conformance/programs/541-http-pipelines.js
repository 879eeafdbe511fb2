'use strict';
// H5 H7 H34 N143: pipelines into and out of messages: order of their ends, a transform between, a peer that goes, an echo with backpressure.
const { log } = require('./_lib');
const { listen, raw } = require('./_http');
const http = require('http');
const { Readable, Transform, pipeline } = require('stream');
const upper = () => new Transform({ transform(chunk, enc, cb) { cb(null, chunk.toString().toUpperCase()); } });
const server = http.createServer((req, res) => {
  const name = req.url.slice(1);
  for (const e of ['end', 'close']) req.on(e, () => log(`${name} req.${e}`));
  for (const e of ['prefinish', 'finish', 'close']) res.on(e, () => log(`${name} res.${e}`));
  const done = (e) => { log(`${name} pipeline ${e ? e.code : 'ok'}`); process.nextTick(() => log(name + ' tick')); };
  if (name === 'from') pipeline(Readable.from([Buffer.from('a'), Buffer.from('b')]), res, done);
  else if (name === 'upper') pipeline(req, upper(), res, done);
  else if (name === 'gone') pipeline(new Readable({ read() { setTimeout(() => this.push('x'), 20); } }), res, done);
  else if (name === 'echo') pipeline(req, res, done);
});
listen(server, (port) => {
  const ask = (path, body, then) => {
    const req = http.request({ port, host: '127.0.0.1', agent: false, path, method: 'POST' }, (res) => {
      let size = 0;
      let text = '';
      res.on('data', (d) => { size += d.length; if (size < 100) text += d; });
      res.on('end', () => { log(`client${path} ${size} ${size < 100 ? text : ''}`); setTimeout(then, 60); });
    });
    body(req);
  };
  ask('/from', (r) => r.end(), () => ask('/upper', (r) => { r.write('one'); setTimeout(() => r.end('two'), 40); }, () => ask('/echo', (r) => r.end(Buffer.alloc(3 << 20)), () => {
    const c = raw(port, 'POST /gone HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc', () => server.close(() => log('closed')));
    c.on('more', (got) => { if (got.includes('x')) c.destroy(); });
  })));
});
