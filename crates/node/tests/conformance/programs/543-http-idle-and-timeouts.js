'use strict';
// H36 H38: idle connections and the three places of a timeout: who hears it, and what happens when none does.
const { log } = require('./_lib');
const { listen, raw, show } = require('./_http');
const http = require('http');
const server = http.createServer({ keepAliveTimeout: 100 }, (req, res) => {
  const p = req.url;
  res.sendDate = false;
  req.on('close', () => log('req.close' + p));
  res.on('close', () => log(`res.close${p} ${res.writableFinished}`));
  if (p === '/req') req.setTimeout(80, (s) => { log('req.timeout ' + (s === req.socket)); res.end('late'); });
  else if (p === '/res') res.setTimeout(80, (s) => { log('res.timeout ' + (s === req.socket)); res.end('late'); });
  else if (p === '/both') { req.setTimeout(80, () => log('never')); req.resume(); res.setTimeout(80, () => { log('res.timeout'); res.end(); }); }
  else if (p === '/none') req.socket.setTimeout(80);
  else if (p === '/server') req.socket.setTimeout(80);
  else res.end('x');
});
const get = (p) => `GET ${p} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`;
listen(server, (port) => {
  const run = (bytes, then) => raw(port, bytes, (t) => { log(show(t)); then(); });
  run('POST /req HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nConnection: close\r\n\r\nab', () => run(get('/res'), () => run(get('/both'), () => run(get('/none'), () => {
    server.on('timeout', (s) => { log('server.timeout'); s.destroy(); });
    run(get('/server'), () => {
      server.removeAllListeners('timeout');
      const start = Date.now();
      run('GET /idle HTTP/1.1\r\nHost: h\r\n\r\n', () => {
        log('idle ' + (Date.now() - start >= 1100));
        server.setTimeout(120);
        run('GET /req HTTP/1.1\r\nHost: h\r\n', () => server.close(() => log('closed')));
      });
    });
  }))));
});
