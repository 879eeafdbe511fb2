'use strict';
// Random answers to a client of http, and what its request and response emit.
//
//   node clients.js COUNT SEED > clients.jsonl      makes cases and records them
//   node clients.js --again clients.jsonl           records the cases of a file again
//
// A case: `ask` is the request, `answers` the pieces that a peer sends back to each request, `then`
// what the peer does behind them, `trace` what happened.
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

const LINES = ['HTTP/1.1 200 OK', 'HTTP/1.1 200 OK', 'HTTP/1.1 404 Not Found', 'HTTP/1.0 200 OK', 'HTTP/1.1 204 No Content',
  'HTTP/1.1 304 Not Modified', 'HTTP/1.1 205 Reset', 'HTTP/1.1 200', 'HTTP/1.1 200 ', 'HTTP/1.1 299 a  b\t', 'http/1.1 200 OK',
  'HTTP/1.2 200 OK', 'HTTP/2.0 200 OK', 'HTTP/0.9 200 OK', 'HTTP/1.1 99 Low', 'HTTP/1.1 1000 High', 'HTTP/1.1  200 OK', 'ICY 200 OK',
  'HTTP/1.1 301 Moved'];
const HEADERS = ['Connection: close', 'Connection: keep-alive', 'connection: Keep-Alive, x', 'Keep-Alive: timeout=1', 'Keep-Alive: timeout=5, max=10',
  'Keep-Alive: timeout=0', 'Set-Cookie: a=1', 'Set-Cookie: b=2', 'X-Twice: 1', 'X-Twice: 2', 'Content-Type: a', 'Content-Type: b', 'Empty:',
  'Spaced: \t a b \t', 'Bad Name: x', ' folded', 'NoColon', 'Nul: a\x00b', 'High: \xe9', 'Location: /x', 'Upgrade: x', 'Trailer: X-End',
  'Proxy-Connection: close', 'Transfer-Encoding: gzip', 'Content-Length: 3', 'Content-Length : 3'];
const BODIES = [['Content-Length: 5', 'hello'], ['Content-Length: 5', 'hello'], ['Content-Length: 0', ''], ['Content-Length: 5', 'hel'],
  ['Content-Length: 3', 'hello'], ['Content-Length: x', 'hello'], [null, 'until close'], [null, ''],
  ['Transfer-Encoding: chunked', '5\r\nhello\r\n0\r\n\r\n'], ['Transfer-Encoding: chunked', '2\r\nhe\r\n3;ext=1\r\nllo\r\n0\r\nX-End: 1\r\n\r\n'],
  ['Transfer-Encoding: chunked', '5\r\nhello\r\n'], ['Transfer-Encoding: chunked', 'zz\r\n'], ['Transfer-Encoding: chunked', '5\r\nhelloX\r\n0\r\n\r\n'],
  ['transfer-encoding: gzip, chunked', '1\r\na\r\n0\r\n\r\n'], ['Transfer-Encoding: chunked', '0\r\n\r\n']];
const BEFORE = ['HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n', 'HTTP/1.1 102 Processing\r\n\r\n',
  'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhead bytes', 'HTTP/1.1 101 Other\r\n\r\n'];
const BEHIND = ['HTTP/1.1 200 Two\r\nContent-Length: 0\r\n\r\n', 'garbage', '\r\n', 'HTTP/1.1 100 Continue\r\n\r\n'];

function make(seed) {
  const next = random(seed);
  const chance = (p) => next() < p;
  const pick = (list) => list[Math.floor(next() * list.length)];
  const method = pick(['GET', 'GET', 'GET', 'POST', 'PUT', 'HEAD', 'DELETE', 'CONNECT', 'OPTIONS']);
  const ask = { method, agent: pick(['keep', 'keep', 'close', 'none']), headers: [], body: [], reads: pick(['flow', 'flow', 'flow', 'later', 'never', 'readable']) };
  if (chance(0.5) && method !== 'CONNECT') ask.body = pick([['ab'], ['ab', 'cd'], ['x'.repeat(100)]]);
  if (chance(0.3)) ask.headers.push(pick([['Content-Length', String(ask.body.join('').length)], ['Connection', 'close'], ['Connection', 'keep-alive'], ['X-A', '1'], ['Transfer-Encoding', 'chunked'], ['Host', 'other'], ['Expect', '100-continue'], ['Connection', 'upgrade'], ['TE', 'trailers']]));
  if (chance(0.15)) ask.flush = true;
  if (chance(0.35)) {
    ask.act = [pick(['socket', 'connect', 'finish', 'continue', 'information', 'response', 'data', 'end', 'close', 'aborted', 'now']), pick(['destroy', 'error', 'abort', 'destroyResponse', 'errorResponse', 'pause', 'endSocket'])];
  }
  if (chance(0.5)) ask.upgrades = true;
  const answer = () => {
    let text = '';
    while (chance(0.12)) text += pick(BEFORE);
    const lines = [chance(0.75) ? 'HTTP/1.1 200 OK' : pick(LINES)];
    const [framing, body] = pick(BODIES);
    if (framing && !chance(0.05)) lines.push(framing);
    while (chance(0.3)) lines.splice(1 + Math.floor(next() * lines.length), 0, pick(HEADERS.slice(0, chance(0.8) ? 14 : HEADERS.length)));
    text += lines.join('\r\n') + '\r\n\r\n' + body;
    if (chance(0.12)) text += pick(BEHIND);
    if (chance(0.06)) text = text.slice(0, Math.floor(next() * text.length));
    if (chance(0.06)) { const at = Math.floor(next() * text.length); text = text.slice(0, at) + String.fromCharCode(Math.floor(next() * 256)) + text.slice(at + 1); }
    const pieces = [];
    let cuts = pick([0, 0, 1, 2, 3]);
    while (cuts-- > 0 && text.length > 1) { const at = 1 + Math.floor(next() * (text.length - 1)); pieces.push(text.slice(0, at)); text = text.slice(at); }
    pieces.push(text);
    return pieces.filter((piece) => piece);
  };
  return { seed, ask, answers: [answer(), ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok']], then: pick(['keep', 'keep', 'end', 'end', 'reset']) };
}

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const text = (value) => JSON.stringify(String(value)).replace(/[\u007f-\uffff]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
const code = (error) => error.code || error.message;

async function run(test) {
  const trace = [];
  const log = (words) => trace.push(words);
  const state = { asked: 0, sent: 0, socket: null, news: 0 };
  const sockets = [];
  const server = net.createServer({ noDelay: true }, (peer) => {
    sockets.push(peer);
    let got = '';
    peer.setEncoding('latin1');
    peer.on('error', () => {});
    peer.on('data', async (piece) => {
      state.news += 1;
      got += piece;
      if (got.indexOf('\r\n\r\n') < 0 || peer.answering) return;
      peer.answering = true;
      await sleep(10);
      state.wire = (state.wire || []).concat(got);
      got = '';
      const pieces = test.answers[Math.min(state.asked, 1)];
      state.asked += 1;
      for (const piece of pieces) {
        if (peer.destroyed) break;
        const before = state.socket ? state.socket.bytesRead : 0;
        peer.write(piece, 'latin1');
        state.news += 1;
        for (let i = 0; i < 100 && state.socket && !state.socket.destroyed && state.socket.bytesRead < before + piece.length; i++) await sleep(4);
        await sleep(10);
      }
      peer.answering = false;
      if (test.then === 'end') peer.end();
      if (test.then === 'reset') peer.resetAndDestroy();
      state.news += 1;
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const agent = test.ask.agent === 'none' ? false : new http.Agent({ keepAlive: test.ask.agent === 'keep' });
  if (agent) agent.on('free', () => { log('free'); state.news += 1; });
  await exchange(test.ask, '', server, agent, log, state);
  await sleep(30);
  await exchange({ method: 'GET', headers: [], body: [], reads: 'flow' }, '2.', server, agent, log, state);
  for (const wire of state.wire || []) log('wire ' + text(wire.replace(/127\.0\.0\.1:\d+/g, 'HOST')));
  log('connections ' + sockets.length);
  const done = trace.slice();
  if (agent) agent.destroy();
  for (const socket of sockets) socket.destroy();
  server.close();
  return done;
}

// Makes a request, and waits until it is closed or nothing happens any more.
async function exchange(ask, prefix, server, agent, log, state) {
  const controller = new AbortController();
  let request, response, isOver = false;
  const act = (at) => {
    if (!ask.act || ask.act[0] !== at) return;
    const target = response || request;
    switch (ask.act[1]) {
      case 'destroy': request.destroy(); break;
      case 'error': request.destroy(new Error('mine')); break;
      case 'abort': controller.abort(); break;
      case 'destroyResponse': target.destroy(); break;
      case 'errorResponse': target.destroy(new Error('mine')); break;
      case 'pause': if (response) { response.pause(); setTimeout(() => response.resume(), 15); } break;
      case 'endSocket': if (request.socket) request.socket.end(); break;
    }
  };
  const note = (words, at) => {
    log(prefix + words);
    state.news += 1;
    if (at) {
      process.nextTick(() => log(prefix + at + '.tick'));
      Promise.resolve().then(() => log(prefix + at + '.promise'));
      act(at);
    }
  };
  try {
    request = http.request({ host: '127.0.0.1', port: server.address().port, agent, method: ask.method, path: ask.method === 'CONNECT' ? 'a:1' : '/p', headers: ask.headers.length ? ask.headers.flat() : undefined, signal: controller.signal });
  } catch (error) {
    return log(prefix + 'thrown ' + code(error));
  }
  request.on('socket', (socket) => {
    state.socket = socket;
    // An error of a response that is destroyed late has no other listener.
    socket.on('error', () => {});
    note('socket reused-' + request.reusedSocket, 'socket');
    if (socket.connecting) socket.once('connect', () => note('connect', 'connect'));
  });
  request.on('finish', () => note('finish', 'finish'));
  request.on('continue', () => note('continue', 'continue'));
  request.on('information', (i) => note('information ' + i.statusCode + ' ' + text(i.statusMessage), 'information'));
  if (ask.upgrades) {
    for (const event of ['upgrade', 'connect']) {
      request.on(event, (message, socket, head) => {
        note(event + ' ' + message.statusCode + ' ' + text(head.toString('latin1')), event);
        socket.destroy();
      });
    }
  }
  request.on('error', (error) => note('error ' + code(error), 'error'));
  request.on('close', () => { isOver = true; note('close', 'close'); });
  request.on('response', (message) => {
    response = message;
    const shown = message.rawHeaders.map(text).join(' ');
    note('response ' + message.httpVersion + ' ' + message.statusCode + ' ' + text(message.statusMessage) + ' ' + shown, 'response');
    message.on('aborted', () => note('aborted', 'aborted'));
    message.on('error', (error) => note('res.error ' + code(error)));
    message.on('end', () => note('end complete-' + message.complete + ' ' + message.rawTrailers.map(text).join(' '), 'end'));
    message.on('close', () => note('res.close complete-' + message.complete));
    const data = (bytes) => note('data ' + text(bytes.toString('latin1')), 'data');
    if (ask.reads === 'flow') message.on('data', data);
    if (ask.reads === 'later') setTimeout(() => message.on('data', data), 60);
    if (ask.reads === 'readable') message.on('readable', () => { let bytes; while ((bytes = message.read()) !== null) data(bytes); });
  });
  act('now');
  ask.body.forEach((piece, i) => { if (i + 1 < ask.body.length) request.write(piece); });
  if (ask.flush) request.flushHeaders();
  if (ask.body.length) request.end(ask.body[ask.body.length - 1]); else request.end();
  let quiet = 0;
  for (let looks = 0; quiet < (isOver ? 12 : 20) && looks < 400; looks++) {
    const before = state.news;
    await sleep(10);
    quiet = state.news === before ? quiet + 1 : 0;
  }
  log(prefix + 'over-' + isOver);
}

// Runs all cases, many at a time.
async function all(cases, done) {
  let at = 0;
  const lane = async () => { while (at < cases.length) { const place = at++; await done(place, await run(cases[place])); } };
  await Promise.all(Array.from({ length: 24 }, lane));
}

(async () => {
  process.on('uncaughtException', (error) => { console.error(error); process.exit(1); });
  const print = (test) => console.log(JSON.stringify(test).replace(/[\u007f-\uffff]/g, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0')));
  if (process.argv[2] === '--again') {
    const cases = fs.readFileSync(process.argv[3], 'utf8').trim().split('\n').map((line) => JSON.parse(line));
    await all(cases, (place, trace) => { cases[place].trace = trace; });
    return cases.forEach(print);
  }
  const [count, seed] = [Number(process.argv[2]), Number(process.argv[3] || 1)];
  const cases = Array.from({ length: count }, (_, i) => make(seed + i));
  await all(cases, (place, trace) => { cases[place].trace = trace; });
  // A response that is read after its connection has closed makes Node emit 'close' of the request twice. That is left out.
  const once = (test) => ['close', '2.close'].every((word) => test.trace.filter((words) => words === word).length < 2);
  cases.filter(once).forEach(print);
})();
