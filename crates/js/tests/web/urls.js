const u = new URL('http://user:pa%20ss@Example.com:8080/a/../b c?x=1&y=2#h');
for (const k of ['href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash']) console.log(k, u[k]);
u.searchParams.append('z', 'a b'); console.log(u.href); u.search = '?q=3'; console.log(u.searchParams.get('q'), [...u.searchParams]); u.port = '80'; u.hostname = 'other'; console.log(u.href, String(u), JSON.stringify(u));
try { new URL('nope'); } catch (e) { console.log(e.name, e.code, e.message, e.input); }
console.log(URL.canParse('x:y'), URL.parse('nope'), new URL('../c', 'http://h/a/b/').href);
const p = new URLSearchParams({ a: 1, b: 'x y' }); p.append('a', '2'); p.set('c', 'ü'); p.sort(); console.log(p.toString(), p.getAll('a'), p.has('a', '2'), p.size, [...p.keys()]); p.delete('a', '2'); console.log(p);
console.log(u); console.log(require('url').fileURLToPath('file:///a%20b/c'), require('url').pathToFileURL('/x y/z#').href);
const h = new Headers({ 'X-B': '1', a: ' 2 ' }); h.append('x-b', '3'); console.log([...h], h.get('X-b'), h.has('q')); h.forEach((v, k) => console.log(k, v));
try { new Headers({ 'a b': '1' }); } catch (e) { console.log(e.name); }
(async () => { const r = new Response('hi', { status: 201, headers: { q: 'w' } }); console.log(r.status, r.ok, r.headers.get('content-type'), await r.clone().text(), r.bodyUsed, await r.text(), r.bodyUsed); await r.text().catch((e) => console.log(e.name)); console.log(await Response.json({ a: 1 }).json()); await fetch('nope').catch((e) => console.log(e.name, e.message, e.cause.code)); await fetch('data:text/plain,hello').then(async (x) => console.log(x.status, await x.text())); })();
