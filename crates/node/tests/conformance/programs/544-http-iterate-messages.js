'use strict';
// H5 H8 N145: messages read by for await: to the end, left early, cut by the peer; the connection after each.
const { log } = require('./_lib');
const { listen, raw, show } = require('./_http');
const http = require('http');
const server = http.createServer(async (req, res) => {
  res.sendDate = false;
  const name = 'server' + req.url;
  req.on('close', () => log(`${name} close ${req.complete} ${req.destroyed}`));
  res.on('close', () => log(`${name} res.close ${res.writableFinished}`));
  try {
    for await (const piece of req) { log(`${name} piece ${piece}`); if (req.url === '/left') break; if (req.url === '/thrown') throw new Error('mine'); }
    log(name + ' over');
  } catch (e) { log(`${name} caught ${e.code || e.message}`); }
  res.end('answer');
});
listen(server, (port) => {
  const post = (p, rest) => `POST ${p} HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n${rest}`;
  const run = (bytes, more, then) => { const c = raw(port, bytes, (t) => { log(show(t)); then(); }); if (more) setTimeout(() => more(c), 60); return c; };
  run(post('/all', 'ab'), (c) => { c.write('cd'); setTimeout(() => c.end(), 60); }, () =>
    run(post('/left', 'ab'), (c) => { c.write('cd'); setTimeout(() => c.end(), 60); }, () =>
      run(post('/left', 'abcd'), (c) => c.end(), () =>
        run(post('/thrown', 'ab'), (c) => c.end(), () =>
          run(post('/cut', 'ab'), (c) => c.destroy(), () => client())))));
  const client = () => {
    const get = async (path, read) => {
      const res = await new Promise((ok, no) => http.get({ port: other.address().port, host: '127.0.0.1', agent: false, path }, ok).on('error', no).on('close', () => log('client' + path + ' req.close')));
      res.on('close', () => log(`client${path} close ${res.complete} ${res.destroyed}`));
      try { await read(res); } catch (e) { log(`client${path} caught ${e.code || e.message}`); }
      await new Promise((r) => setTimeout(r, 80));
    };
    const other = http.createServer((req, res) => { res.write('one'); setTimeout(() => (req.url === '/cut' ? res.destroy() : res.end('two')), 40); });
    listen(other, async () => {
      await get('/all', async (res) => { for await (const p of res) log('client piece ' + p); });
      await get('/left', async (res) => { for await (const p of res) { log('client piece ' + p); break; } });
      await get('/cut', async (res) => { for await (const p of res) log('client piece ' + p); });
      other.close();
      server.close(() => log('closed'));
    });
  };
});
