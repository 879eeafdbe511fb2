'use strict';
// N105: sockets that stay half open, their counts, servers and sockets that keep nothing alive.
const { log } = require('./_lib');
const net = require('net');
const over = [];
const server = net.createServer({ allowHalfOpen: true, highWaterMark: 4096 }, (s) => {
  log('marks-' + s.readableHighWaterMark + '-' + s.writableHighWaterMark + '-' + s.allowHalfOpen);
  server.getConnections((e, n) => log('connections-' + e + '-' + n));
  log('connection');
  let all = '';
  s.on('data', (d) => { all += d; });
  s.on('end', () => {
    log('server.end-' + all);
    setImmediate(() => { log('server.writable-' + s.writable); s.end('late'); });
  });
  s.on('close', () => over.push('server-' + s.bytesRead + '-' + s.bytesWritten));
});
server.listen(0, '127.0.0.1', () => {
  const c = net.connect({ port: server.address().port, host: '127.0.0.1' });
  log('queued-' + c.bytesWritten);
  c.write('hello');
  log('queued-' + c.bytesWritten);
  c.end(' world');
  log('queued-' + c.bytesWritten);
  c.on('data', (d) => log('client.data-' + d + '-' + c.bytesRead));
  c.on('end', () => log('client.end'));
  c.on('close', () => { over.push('client-' + c.bytesRead + '-' + c.bytesWritten); server.close(second); });
});
function second() {
  const quiet = net.createServer((s) => {
    s.unref();
    log('second');
    s.on('data', () => log('never'));
  });
  quiet.unref();
  quiet.listen(0, '127.0.0.1', () => {
    const c = net.connect(quiet.address().port, '127.0.0.1');
    setTimeout(() => c.unref(), 50);
    process.on('exit', () => { over.sort().forEach(log); log('exit-' + c.destroyed + '-' + quiet.listening); });
  });
}
