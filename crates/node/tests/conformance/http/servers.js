'use strict';
// Random handlers of a server of http, and what its messages emit.
//
//   node servers.js COUNT SEED > servers.jsonl      makes cases and records them
//   node servers.js --again servers.jsonl           records the cases of a file again
//
// A case: `send` is what a peer sends, piece by piece, `then` what it does behind them, `handlers` what is done with
// each request: when, what, and with which arguments; `trace` what happened.
const http = require('http');
const net = require('net');
const fs = require('fs');

// A generator of random numbers with a seed.
const random = (seed) => () => {
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
};

const BODIES = ['', '', '', 'Content-Length: 3\r\n\r\nabc', 'Content-Length: 5\r\n\r\nhello', 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n',
  'Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\nX-T: 1\r\n\r\n', 'Content-Length: 0\r\n\r\n'];
const LINES = ['Connection: close', 'Connection: keep-alive', 'Expect: 100-continue', 'TE: trailers', 'X-A: 1', 'Expect: other'];
const FAULTS = ['Content-Length: 5\r\n\r\nhel', 'Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n', 'Transfer-Encoding: chunked\r\n\r\n3\r\nab', 'Bad Name: x\r\n\r\n'];
// What returns its error in the port; the others throw there, too.
const CODED = ['setHeader', 'appendHeader', 'removeHeader', 'writeHead', 'addTrailers', 'hints'];
const WHENS = ['now', 'now', 'now', 'now', 'tick', 'promise', 'immediate', 'end', 'data'];

function make(seed) {
  const next = random(seed);
  const chance = (p) => next() < p;
  const pick = (list) => list[Math.floor(next() * list.length)];
  const request = (i) => {
    const method = pick(['GET', 'GET', 'POST', 'POST', 'PUT', 'HEAD', 'OPTIONS']);
    const version = chance(0.9) ? '1.1' : '1.0';
    let text = `${method} /${i} HTTP/${version}\r\nHost: h\r\n`;
    if (chance(0.25)) text += pick(LINES) + '\r\n';
    if (chance(0.06)) return text + pick(FAULTS);
    const body = method === 'GET' || method === 'HEAD' ? '' : pick(BODIES);
    return text + (body || '\r\n');
  };
  const count = pick([1, 1, 1, 2, 2, 3]);
  let all = '';
  for (let i = 0; i < count; i++) all += request(i);
  // What comes in several pieces, or behind the end of the peer, depends on the load of the machine.
  const send = [all];
  const op = () => pick([
    ['write', 'ab'], ['write', 'ab'], ['write', ''], ['writeBig'], ['end'], ['end', 'xyz'], ['end', 'xyz'], ['endCallback'], ['sized'], ['setHeader', 'X-B', '2'],
    ['setHeader', 'Connection', 'close'], ['setHeader', 'Transfer-Encoding', 'chunked'], ['setHeader', 'Trailer', 'X-T'], ['removeHeader', 'Transfer-Encoding'], ['removeHeader', 'Connection'],
    ['removeHeader', 'Content-Length'], ['appendHeader', 'X-B', '3'], ['writeHead', 200], ['writeHead', 204], ['writeHead', 304], ['writeHead', 404, 'X-C', '4'],
    ['flushHeaders'], ['cork'], ['uncork'], ['addTrailers', 'X-T', '1'], ['writeContinue'], ['writeProcessing'], ['hints'], ['status', 201], ['status', 205],
    ['destroyResponse'], ['destroyRequest'], ['destroySocket'], ['resume'], ['resume'], ['onData'], ['onData'], ['pause'], ['closeServer'], ['closeIdle'], ['closeAll'],
  ]);
  const handlers = [];
  for (let i = 0; i < count; i++) {
    const list = [];
    if (chance(0.6)) list.push(['now', pick(['resume', 'onData'])]);
    do list.push([pick(WHENS), ...op()]); while (chance(0.65) && list.length < 8);
    if (chance(0.8)) list.push([pick(WHENS), 'end', 'ok']);
    handlers.push(list);
  }
  return { seed, send, then: 'wait', handlers };
}

const wait = (ms) => new Promise((r) => setTimeout(r, ms));

async function run(c) {
  const trace = [];
  let over = false;
  const log = (t) => { if (!over) trace.push(t); };
  const marked = (name) => { log(name); process.nextTick(() => log(name + '.tick')); Promise.resolve().then(() => log(name + '.promise')); };
  const code = (e) => (e ? e.code || e.message : 'ok');
  let count = 0;
  const server = http.createServer();
  const handle = (req, res) => {
    const i = count++;
    const n = i + '.';
    res.sendDate = false;
    marked(`${n}request ${req.method} ${req.url}`);
    // Closed messages have no listeners in the port.
    const open = { req: true, res: true };
    req.on('close', () => { open.req = false; });
    for (const e of ['end', 'aborted', 'pause', 'resume']) req.on(e, () => open.req && (e === 'end' ? marked : log)(n + 'req.' + e + (e === 'end' ? ` ${req.complete} ${req.rawTrailers.join('=')}` : '')));
    req.on('close', () => marked(n + 'req.close'));
    req.on('error', (e) => log(`${n}req.error ${code(e)}`));
    for (const e of ['prefinish', 'finish', 'close', 'drain']) res.on(e, () => open.res && (e === 'finish' || e === 'close' ? marked : log)(n + 'res.' + e));
    res.on('close', () => { open.res = false; });
    res.on('error', (e) => log(`${n}res.error ${code(e)}`));
    const act = (what, a, b, d) => {
      try {
        switch (what) {
          case 'write': log(`${n}write ${res.write(a, (e) => log(`${n}written ${code(e)}`))}`); break;
          case 'writeBig': log(`${n}big ${res.write('y'.repeat(20000))}`); break;
          case 'end': if (a) res.end(a); else res.end(); break;
          case 'endCallback': res.end('cb', (e) => log(`${n}ended ${code(e)}`)); break;
          case 'sized': res.setHeader('Content-Length', 3); res.end('abc'); break;
          case 'setHeader': res.setHeader(a, b); break;
          case 'appendHeader': res.appendHeader(a, b); break;
          case 'removeHeader': res.removeHeader(a); break;
          case 'writeHead': if (b) res.writeHead(a, { [b]: d }); else res.writeHead(a); break;
          case 'flushHeaders': res.flushHeaders(); break;
          case 'cork': res.cork(); break;
          case 'uncork': if (res.writableCorked > 0) res.uncork(); break;
          case 'addTrailers': res.addTrailers({ [a]: b }); break;
          case 'writeContinue': res.writeContinue(); break;
          case 'writeProcessing': res.writeProcessing(); break;
          case 'hints': res.writeEarlyHints({ link: '</a>; rel=preload' }); break;
          case 'status': res.statusCode = a; break;
          case 'destroyResponse': res.destroy(); break;
          case 'destroyRequest': req.destroy(); break;
          case 'destroySocket': req.socket.destroy(); break;
          case 'resume': req.resume(); break;
          case 'pause': req.pause(); break;
          case 'onData': req.on('data', (x) => marked(`${n}data ${x}`)); break;
          case 'closeServer': server.close(); break;
          case 'closeIdle': server.closeIdleConnections(); break;
          case 'closeAll': server.closeAllConnections(); break;
        }
        log(`${n}did ${what} ${res.headersSent} ${res.writableEnded} ${res.destroyed} ${req.destroyed}`);
      } catch (e) { log(`${n}threw ${what} ${CODED.includes(what) ? e.code : ''}`); }
    };
    for (const [when, ...op] of c.handlers[i] || []) {
      const f = () => act(...op);
      if (when === 'now') f();
      if (when === 'tick') process.nextTick(f);
      if (when === 'promise') Promise.resolve().then(f);
      if (when === 'immediate') setImmediate(f);
      if (when === 'end') req.once('end', f);
      if (when === 'data') req.once('data', f);
    }
  };
  server.on('request', handle);
  server.on('connection', (s) => { s.on('close', (bad) => log(`socket.close ${bad}`)); s.on('end', () => log('socket.end')); });
  server.on('close', () => log('server.close'));
  await new Promise((r) => server.listen(0, '127.0.0.1', r));
  const peer = net.connect({ port: server.address().port, host: '127.0.0.1', allowHalfOpen: true });
  peer.setNoDelay(true);
  let got = '';
  let gone = false;
  peer.setEncoding('latin1');
  peer.on('data', (d) => { got += d; });
  peer.on('end', () => { gone = true; peer.end(); });
  peer.on('error', () => { gone = true; });
  await new Promise((r) => peer.on('connect', r));
  for (const piece of c.send) { if (!gone) peer.write(piece, 'latin1'); await wait(50); }
  await wait(50);
  const closed = gone;
  log('peer');
  if (c.then === 'destroy') peer.destroy(); else if (c.then === 'end') peer.end(); else await wait(50);
  if (c.then === 'wait') peer.end();
  await wait(100);
  log('over');
  over = true;
  server.closeAllConnections();
  server.close();
  peer.destroy();
  trace.push(`closed ${closed}`, 'wire ' + JSON.stringify(got.replace(/\r\nDate: [^\r]*/g, '').replace(/y{20000}/g, 'Y').replace(/y{100,}/g, 'y')));
  return trace;
}

async function lanes(list, each) {
  const queue = [...list];
  await Promise.all(Array.from({ length: 8 }, async () => { for (let c = queue.shift(); c; c = queue.shift()) await each(c); }));
}

async function main() {
  if (process.argv[2] === '--again') {
    const cases = fs.readFileSync(process.argv[3], 'utf8').split('\n').filter(Boolean).map((l) => JSON.parse(l));
    await lanes(cases, async (c) => { c.trace = await run(c); });
    for (const c of cases) console.log(JSON.stringify(c));
    return;
  }
  const [count, seed] = process.argv.slice(2).map(Number);
  const cases = Array.from({ length: count }, (_, i) => make(seed + i));
  // What differs from run to run is not a case.
  await lanes(cases, async (c) => { const first = await run(c); const second = await run(c); c.trace = JSON.stringify(first) === JSON.stringify(second) ? first : null; });
  for (const c of cases) if (c.trace) console.log(JSON.stringify(c));
}
main();
