'use strict';
// H110: lines of a file, of a socket, of a child process, and of a stream with an encoding.
const { log, tmp } = require('./_lib');
const fs = require('fs');
const net = require('net');
const readline = require('readline');
const { once } = require('events');
const { spawn } = require('child_process');
const { PassThrough } = require('stream');
(async () => {
  const path = tmp('lines');
  fs.writeFileSync(path, 'one\r\ntwo\n\nlast');
  const file = readline.createInterface({ input: fs.createReadStream(path, { highWaterMark: 4 }), crlfDelay: Infinity });
  for await (const l of file) log('file-' + JSON.stringify(l));
  log('file.closed');
  const server = net.createServer((s) => {
    const rl = readline.createInterface({ input: s, output: s });
    rl.on('line', (l) => { log('got-' + l); if (l === 'bye') { s.end('bye\n'); } else rl.question('you said ' + l + '; why?\n', (a) => s.write('because ' + a + '\n')); });
    rl.on('close', () => log('server.close'));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const c = net.connect(server.address().port, '127.0.0.1');
  const answers = readline.createInterface({ input: c });
  c.write('hello\n');
  for await (const l of answers) {
    log('answer-' + l);
    if (l.endsWith('why?')) c.write('so\n');
    if (l.startsWith('because')) c.write('bye\n');
  }
  server.close();
  await once(server, 'close');
  const child = spawn('printf', ['a\\nb\\nc']);
  for await (const l of readline.createInterface({ input: child.stdout })) log('child-' + l);
  const text = new PassThrough();
  text.setEncoding('utf8');
  const rl = readline.createInterface({ input: text });
  rl.on('line', (l) => log('text-' + l));
  const bytes = Buffer.from('na\u00efve\n');
  text.write(bytes.subarray(0, 3));
  text.end(bytes.subarray(3));
})();
