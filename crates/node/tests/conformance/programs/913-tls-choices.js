'use strict';
// N161: the fields of certificates, contexts and protocols that callbacks choose, and TLS over streams.
const { log } = require('./_lib');
const fs = require('fs');
const path = require('path');
const stream = require('stream');
const tls = require('tls');

const file = (name) => fs.readFileSync(path.join(__dirname, '../../../../../tests/util/certificates', name));
const [ca, second, odd] = ['ca.pem', 'second-ca.pem', 'odd.pem'].map(file);
const identity = (name) => ({ cert: file(name + '.pem'), key: file(name + '.key') });
const pairs = (name) => Object.entries(name).flatMap(([key, value]) => [value].flat().map((value) => key + '=' + value)).join('/');
const show = (c) => {
  log(`${pairs(c.subject)} by ${pairs(c.issuer)}`);
  log(`${c.subjectaltname} ${c.ca} ${c.ext_key_usage} ${c.serialNumber}`);
  log(`${c.valid_from} ${c.valid_to}`);
  log(`${c.fingerprint} ${c.fingerprint256} ${c.fingerprint512}`);
};
const server = tls.createServer({
  ...identity('server'),
  SNICallback: (name, callback) => {
    log('sni ' + name);
    if (name === 'refused.test') return callback(new Error('no'));
    const known = { 'other.test': 'other', 'odd.test': 'odd' }[name];
    setTimeout(() => callback(null, known && tls.createSecureContext(identity(known))), 5);
  },
  ALPNCallback: ({ servername, protocols }) => {
    log(`alpn ${servername} ${protocols}`);
    return protocols.find((protocol) => protocol.startsWith('b'));
  },
}, (socket) => {
  log(`server ${socket.alpnProtocol} ${socket.servername}`);
  socket.on('error', () => {});
  socket.end('hello');
});
server.on('tlsClientError', () => {});
server.listen(0, '127.0.0.1', () => {
  const talk = (servername, ALPNProtocols, next) => {
    const socket = tls.connect({ port: server.address().port, host: '127.0.0.1', ca: [ca, second, odd], servername, ALPNProtocols });
    socket.on('secureConnect', () => { log('connect ' + socket.alpnProtocol); show(socket.getPeerCertificate()); });
    socket.on('data', (data) => log(String(data)));
    socket.on('error', () => log('error'));
    socket.on('close', () => { log('close'); next(); });
  };
  talk('localhost', ['a', 'b1', 'b2'], () =>
    talk('other.test', ['b2', 'b1'], () =>
      talk('odd.test', undefined, () =>
        talk('refused.test', undefined, () =>
          talk('localhost', ['a', 'c'], () => { server.close(); over(); })))));
});

const over = () => {
  const [left, right] = stream.duplexPair();
  const accepted = new tls.TLSSocket(right, { isServer: true, ...identity('server') });
  accepted.on('data', (data) => { log('over ' + data); accepted.end('bye'); });
  const client = tls.connect({ socket: left, ca, servername: 'localhost' });
  client.on('secureConnect', () => { log('secure ' + client.getPeerCertificate().subject.CN); client.write('hello'); });
  client.on('data', (data) => log('client ' + data));
  client.on('end', () => { log('client end'); client.destroy(); accepted.destroy(); untrusted(); });
};

const untrusted = () => {
  const [left, right] = stream.duplexPair();
  new tls.TLSSocket(right, { isServer: true, ...identity('other') }).on('error', () => {});
  const client = tls.connect({ socket: left, ca, servername: 'localhost' });
  client.on('error', (error) => log(error.code));
  client.on('close', () => { log('untrusted close'); right.destroy(); });
};
