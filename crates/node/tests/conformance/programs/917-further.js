'use strict';
// N109, N151, N155: the owner of a file, a server that shares no port, debuglog.
const { log, tmp } = require('./_lib');
const fs = require('fs');
const net = require('net');
const util = require('util');

const debug = util.debuglog('phaseloop-further');
debug('this is not written %d', 1);
log('debuglog ' + debug.enabled);

const file = tmp('further');
fs.writeFileSync(file, 'text');
const { uid, gid } = fs.statSync(file);
fs.chown(file, uid, gid, (error) => {
  log('chown ' + error);
  fs.stat(file, (_, stats) => {
    log('owner ' + (stats.uid === uid && stats.gid === gid));
    fs.chown(file + '.missing', uid, gid, (missing) => {
      log('missing ' + missing.code + ' ' + missing.syscall);
      fs.promises.chown(file, uid, gid).then((value) => {
        log('promise ' + value);
        fs.unlinkSync(file);
        listen();
      });
    });
  });
});

const listen = () => {
  const server = net.createServer();
  server.listen({ port: 0, host: '127.0.0.1', exclusive: true }, () => {
    log('exclusive ' + server.listening);
    const { port } = server.address();
    const second = net.createServer();
    second.on('error', (error) => {
      log('second ' + error.code);
      server.close(() => log('closed'));
    });
    second.listen({ port, host: '127.0.0.1', exclusive: true });
  });
};
