'use strict';
// H94: every status of a redirection with every mode and method; relative, empty, repeated and odd locations; fragments.
const { log } = require('./_lib');
const { listen } = require('./_http');
const http = require('http');
const locations = { '/relative/a': 'b', '/dots/a/b': '../c', '/query': '?q=1', '/empty': '', '/hash': '#only', '/scheme': '//127.0.0.1:PORT/target', '/user': 'http://u:p@127.0.0.1:PORT/target', '/ftp': 'ftp://127.0.0.1/', '/utf': '/caf\u00e9', '/space': '/a b' };
const server = http.createServer((req, res) => {
  const path = req.url.split('?')[0];
  const code = Number(path.slice(1)) || 0;
  if (code >= 300 && code < 400) { res.writeHead(code, { Location: '/target' }); return void res.end('moved'); }
  if (path in locations && req.url !== '/query?q=1') { res.writeHead(302, { Location: locations[path].replace('PORT', server.address().port) }); return void res.end(); }
  let body = '';
  req.on('data', (d) => { body += d; });
  req.on('end', () => res.end([req.method, req.url, body || '-', req.headers['content-type'] || '-', req.headers['content-length'] || '-', req.headers['x-mine'] || '-'].join(' ')));
});
listen(server, async (port) => {
  const base = 'http://127.0.0.1:' + port;
  const show = async (name, url, init) => {
    try {
      const r = await fetch(base + url, init);
      const text = init && init.method === 'HEAD' ? '' : await r.text();
      log([name, r.status, r.redirected, r.type, r.url.replace(base, ''), text].join(' '));
    } catch (e) { log([name, e.name, e.message, e.cause && (e.cause.code || e.cause.message)].join(' ')); }
  };
  for (const code of [300, 301, 302, 303, 304, 305, 306, 307, 308, 310]) await show('get', '/' + code);
  for (const code of [301, 302, 303, 307, 308]) {
    for (const method of ['HEAD', 'PUT', 'DELETE', 'PATCH']) await show(method + code, '/' + code, { method, body: method === 'PUT' || method === 'PATCH' ? 'b' : undefined, headers: { 'X-Mine': '1' } });
    await show('error' + code, '/' + code, { redirect: 'error' });
    await show('manual' + code, '/' + code, { redirect: 'manual' });
  }
  for (const path of Object.keys(locations)) await show('at' + path, path + (path === '/query' ? '#mine' : ''), {});
  await show('fragment', '/302#frag');
  server.close();
  server.closeAllConnections();
});
