'use strict';
// N158: what a handshake agrees on: protocols, versions, ciphers, names, certificates, sessions that are resumed.
const { log } = require('./_lib');
const fs = require('fs');
const path = require('path');
const tls = require('tls');

const file = (name) => fs.readFileSync(path.join(__dirname, '../../../../../tests/util/certificates', name));
const [ca, cert, key] = ['ca.pem', 'server.pem', 'server.key'].map(file);
const server = tls.createServer({ cert, key, ALPNProtocols: ['two', 'one'] }, (socket) => {
  log(`server ${socket.alpnProtocol} ${socket.servername} ${socket.isSessionReused()}`);
  socket.end('hello');
  socket.on('error', () => {});
});
server.listen(0, '127.0.0.1', () => {
  let session;
  const talk = (name, options, next) => {
    const socket = tls.connect({ port: server.address().port, host: '127.0.0.1', ca, servername: 'localhost', session, ...options });
    socket.on('secureConnect', () => {
      const { standardName } = socket.getCipher();
      const certificate = socket.getPeerCertificate();
      log(`${name} ${socket.alpnProtocol || 'none'} ${socket.getProtocol()} ${standardName} ${socket.isSessionReused()}`);
      if (certificate.raw) log(`${certificate.raw.length} ${certificate.fingerprint256}`);
    });
    socket.on('session', (one) => { session = one; });
    socket.on('data', (bytes) => log(`${name} ${bytes}`));
    socket.on('error', () => log(`${name} error`));
    socket.on('close', () => { log(`${name} close`); next(); });
  };
  talk('first', { ALPNProtocols: ['one', 'two'] }, () =>
    talk('second', { ALPNProtocols: ['one', 'two'] }, () =>
      talk('third', { ALPNProtocols: ['one'], session: undefined }, () =>
        talk('none', { session: undefined }, () =>
          talk('other', { ALPNProtocols: ['other'], session: undefined }, () => server.close())))));
});
