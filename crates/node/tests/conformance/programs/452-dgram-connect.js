'use strict';
// N107: a connected socket for datagrams, and several buffers in one.
const { log } = require('./_lib');
const dgram = require('dgram');
const server = dgram.createSocket('udp4');
const client = dgram.createSocket('udp4');
const said = (f) => { try { f(); } catch (e) { log(e.code + '-' + e.message); } };
server.on('message', (m) => {
  log('message-' + m);
  if (String(m) === 'one two') client.send('three');
  else { server.close(); client.close(); }
});
server.bind(0, '127.0.0.1', () => {
  const { port } = server.address();
  said(() => client.remoteAddress());
  client.connect(port, '127.0.0.1');
  said(() => client.connect(port, '127.0.0.1'));
  client.on('connect', () => {
    log('connect-' + (client.remoteAddress().port === port));
    said(() => client.send(Buffer.from('x'), 0, 1, port, '127.0.0.1'));
    client.send([Buffer.from('one '), Buffer.from('two')]);
  });
});
