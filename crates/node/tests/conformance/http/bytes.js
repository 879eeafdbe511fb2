'use strict';
// Records raw requests.   node bytes.js --again CASES.jsonl > OUT.jsonl
// A line of CASES has `name` and `send`; ../http.rs explains what is recorded.
const fs = require('fs'), http = require('http'), net = require('net');
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const undated = (text) => text.replace(/\r\nDate: [^\r]*/g, '');

async function record({ name, send }) {
  let ended = false, over = false, received = '', news = 0, side = null;
  const out = { name, send, answer: '', closed: false, error: null, seen: [] };
  let error = null, errorAfterEnd = null;
  const server = http.createServer((req, res) => {
    const seen = { method: req.method, url: req.url, version: req.httpVersion, headers: req.rawHeaders, body: '', trailers: [], ended: false };
    out.seen.push(seen);
    req.on('data', (bytes) => { seen.body += bytes.toString('latin1'); });
    req.on('error', () => {});
    req.on('end', () => { seen.ended = true; seen.trailers = req.rawTrailers; res.end('ok'); });
  });
  server.on('connection', (socket) => {
    side = socket;
    socket.on('error', (e) => { if (ended) errorAfterEnd = e.code; else error = e.code; });
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const client = new net.Socket({ allowHalfOpen: true });
  client.setNoDelay(true);
  client.on('data', (bytes) => { received += bytes.toString('latin1'); news++; });
  for (const event of ['end', 'error', 'close']) client.on(event, () => { over = true; news++; });
  client.connect(server.address().port, '127.0.0.1');
  let sent = 0;
  const read = async () => { for (let i = 0; i < 200 && sent && !over; i++) { await wait(5); if (side && side.bytesRead >= sent) return wait(5); } };
  for (const piece of send) {
    await read();
    if (!over) client.write(Buffer.from(piece, 'latin1'));
    sent += piece.length;
  }
  await read();
  for (let looks = 0; !over && looks < 15; looks++) { const before = news; await wait(10); if (news !== before) looks = 0; }
  out.answer = undated(received);
  out.closed = over;
  if (!over) {
    const before = received.length;
    ended = true;
    client.end();
    for (let i = 0; i < 100 && !over; i++) await wait(10);
    out.after_end = undated(received.slice(before));
    out.error_after_end = errorAfterEnd;
  }
  client.destroy();
  await wait(20);
  server.close();
  server.closeAllConnections();
  out.error = error;
  return out;
}

(async () => {
  const cases = fs.readFileSync(process.argv[3], 'utf8').split('\n').filter((line) => line.trim()).map((line) => JSON.parse(line));
  const results = new Array(cases.length);
  let next = 0;
  const lane = async () => { for (let i = next++; i < cases.length; i = next++) results[i] = await record(cases[i]); };
  await Promise.all(Array.from({ length: 16 }, lane));
  for (const result of results) console.log(JSON.stringify(result));
})();
