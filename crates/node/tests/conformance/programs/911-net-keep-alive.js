'use strict';
// N159: probes of idle connections: the seconds until the first one, as the system has them.
const net = require('net');
const fs = require('fs');
const { log } = require('./_lib');
const hex = (port) => ':' + port.toString(16).toUpperCase().padStart(4, '0');
const probe = (s) => {
  const lines = fs.readFileSync('/proc/net/tcp', 'latin1').split('\n').map((line) => line.trim().split(/\s+/));
  const line = lines.find((line) => line[1]?.endsWith(hex(s.localPort)) && line[2].endsWith(hex(s.remotePort)));
  const [kind, ticks] = line[5].split(':');
  return kind === '02' ? Math.ceil(parseInt(ticks, 16) / 10000) * 100 : 'none';
};
(async () => {
  const server = net.createServer((s) => s.resume());
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const connected = async (...before) => {
    const s = new net.Socket();
    for (const options of before) s.setKeepAlive(...options);
    s.connect(server.address().port, '127.0.0.1');
    await new Promise((resolve) => s.on('connect', resolve));
    return s;
  };
  let s = await connected();
  const set = (...options) => { const same = s.setKeepAlive(...options) === s; log(options.map((o) => JSON.stringify(o)).join() + ' ' + probe(s) + ' ' + same); };
  log(String(probe(s)));
  set(true);
  set(true, 300000, 10000, 9);
  set(true, 400000);
  set(true, 500000, 500);
  set(true, 600000, 2000, 0);
  set(true, 999);
  set(true, 40000000);
  set(false);
  set(true, 999);
  set(true, 700000, 3000);
  set({ enable: true, initialDelay: 800000, interval: 3000, count: 4 });
  set({ enable: true, initialDelay: 900000 });
  set({ enable: false, initialDelay: 900000 });
  s.destroy();
  for (const before of [[[true, 300000, 2000, 3]], [[true, 300000], [true, 500]], [[true, 300000], [false]], [[true, 300000, 0]]]) {
    s = await connected(...before);
    log('before ' + probe(s));
    s.destroy();
  }
  server.close();
})();
