// What connect.rs does, with the package: npm install connect@3.7.0; NODE_ENV=production node connect.mjs > connect.expected
import connect from 'connect';
import http from 'node:http';

const log = (text) => console.log(text);
const seen = (name, req) => log(`${name} ${req.url} of ${req.originalUrl}`);

async function ask(server, method, path, body) {
  log(`> ${method} ${path}`);
  await new Promise((resolve) => {
    const { port } = server.address();
    const req = http.request({ port, host: '127.0.0.1', method, path, agent: false }, (res) => {
      let text = '';
      res.setEncoding('utf8');
      res.on('data', (data) => { text += data; });
      res.on('aborted', () => log('aborted'));
      res.on('error', () => {});
      res.on('close', () => {
        log(`< ${res.statusCode} ${res.statusMessage}`);
        for (const name of ['content-security-policy', 'x-content-type-options', 'content-type', 'content-length', 'retry-after', 'x-by']) {
          if (res.headers[name] !== undefined) log(`${name}: ${res.headers[name]}`);
        }
        log(text.trimEnd());
        resolve();
      });
    });
    req.on('error', (error) => log(`error ${error.code}`));
    req.end(body);
  });
}

async function serve(name, app, requests) {
  log(`== ${name}`);
  const server = http.createServer(app);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  for (const [method, path, body] of requests) await ask(server, method, path, body);
  await new Promise((resolve) => server.close(resolve));
}

{
  const app = connect();
  app.use((req, res, next) => { seen('first', req); res.setHeader('X-By', 'first'); next(); });
  app.use('/hello', (req, res, next) => { seen('hello', req); req.user = 'Ada'; next(); });
  app.use((req, res, next) => { seen('second', req); setTimeout(next, 1); });
  app.use((req, res) => { res.end(`hello, ${req.user}`); });
  await serve('a chain', app, [['GET', '/'], ['GET', '/hello']]);
}
{
  const app = connect();
  app.use('/blog/', (req, res, next) => {
    seen('blog', req);
    if (req.url.startsWith('/next')) return next();
    res.end(req.url);
  });
  app.use((req, res) => { seen('rest', req); res.end(`rest ${req.url}`); });
  await serve('mounted', app, [
    ['GET', '/blog'], ['GET', '/blog/'], ['GET', '/blog/post?a=/b'], ['GET', '/blogger'], ['GET', '/BLOG/Post'],
    ['GET', '/blog.json'], ['GET', '/blog?q'], ['GET', '/blog/next?x'], ['GET', '/'], ['GET', 'http://example.com/blog/post?a=1'],
    ['GET', 'http://example.com/blog/next'], ['OPTIONS', '*'],
  ]);
}
{
  const app = connect();
  const outer = connect();
  const inner = connect();
  inner.use('/c', (req, res) => { seen('inner', req); res.end('inner'); });
  inner.use((req, res, next) => { seen('inner, none', req); next(); });
  outer.use('/b', inner);
  outer.use((req, res, next) => { seen('outer, none', req); next(req.url === '/fail' ? new Error('outer') : undefined); });
  app.use('/a', outer);
  app.use('/server', http.createServer((req, res) => { seen('server', req); res.end('server'); }));
  app.use((err, req, res, next) => { seen(`error ${err.message}`, req); next(err); });
  await serve('nested', app, [['GET', '/a/b/c/d'], ['GET', '/a/b/x'], ['GET', '/a/y'], ['GET', '/z'], ['GET', '/a/fail'], ['GET', '/server/x']]);
}
{
  const app = connect();
  app.use('/next', (req, res, next) => next(new Error('passed')));
  app.use('/throw', () => { throw new Error('thrown'); });
  app.use((req, res, next) => { seen('plain', req); next(); });
  app.use('/throw', (err, req, res, next) => { seen(`mounted ${err.message}`, req); throw new Error('replaced'); });
  app.use((err, req, res, next) => { seen(`any ${err.message}`, req); next(req.url === '/next/forgiven' ? undefined : err); });
  app.use((req, res) => { seen('forgiven', req); res.end('forgiven'); });
  app.use((err, req, res, next) => { res.statusCode = 502; res.end(`last ${err.message}`); });
  await serve('errors', app, [['GET', '/'], ['GET', '/next'], ['GET', '/throw/x'], ['GET', '/next/forgiven']]);
}
{
  const app = connect();
  app.use('/status', (req, res, next) => next(Object.assign(new Error('busy'), { status: 503, headers: { 'Retry-After': '7' } })));
  app.use('/odd', (req, res, next) => next(Object.assign(new Error('odd'), { status: 200 })));
  app.use('/code', (req, res, next) => { res.statusCode = 409; next(new Error('tea')); });
  app.use('/sent', (req, res, next) => { res.write('half'); setTimeout(() => next(new Error('late')), 20); });
  app.use('/done', (req, res, next) => { res.end('done'); next(); });
  await serve('the last handler', app, [
    ['GET', '/none?a=b'], ['HEAD', '/none'], ['POST', '/none', 'x'.repeat(100000)], ['GET', '/a<b>"%20%zz\'&'], ['GET', '/status'],
    ['GET', '/odd'], ['GET', '/code'], ['GET', '/sent'], ['GET', '/done'],
  ]);
}
