'use strict';
// N162: records of name servers: each type, answers that are cut, forged, broken or missing, and Node's codes.
const { log } = require('./_lib');
const dgram = require('dgram');
const dns = require('dns');
const net = require('net');

// A name: its code, the number of its records, and their bytes. `c00c` is the name that was asked for.
const record = (type, size, data) => 'c00c' + type + '00010000003c' + size + data;
const ANSWERS = {
  'a.test': [0, 2, record('0001', '0004', 'c0000201') + record('0001', '0004', 'c0000202')],
  'aaaa.test': [0, 1, record('001c', '0010', '20010db8000000000000000000000001')],
  'mx.test': [0, 2, record('000f', '0007', '000a026d78c00c') + record('000f', '0004', '0005c00c')],
  'txt.test': [0, 2, record('0010', '0008', '0361626303646566') + record('0010', '0001', '00')],
  'srv.test': [0, 1, record('0021', '000e', '000100021f900173047465737400')],
  'packed.test': [0, 1, record('0021', '000a', '000100021f900173c00c')],
  'cname.test': [0, 1, record('0005', '0006', '03777777c00c')],
  'ns.test': [0, 1, record('0002', '0006', '036e7331c00c')],
  'soa.test': [0, 1, record('0006', '0020', '026e73c00c04686f7374c00c0000000100000002000000030000000400000005')],
  'naptr.test': [0, 1, record('0023', '0013', '000a0014017303736970' + '00' + '0172047465737400')],
  'chain.test': [0, 2, record('0005', '0008', '0178047465737400') + '0178047465737400' + '0001' + '00010000003c' + '0004' + 'c0000203'],
  'odd.test': [0, 1, record('0005', '0009', '06612e625c632e' + 'c00c')],
  '1.2.0.192.in-addr.arpa': [0, 1, record('000c', '000b', '04686f73740474657374' + '00')],
  'spoof.test': [0, 1, record('0001', '0004', 'c0000204')],
  'cut.test': [0, 1, record('0001', '0004', 'c0000205')],
  'loop.test': [0, 1, record('000f', '0004', '000ac029')],
  'short.test': [0, 2, record('0001', '0004', 'c0000206')],
  'size.test': [0, 1, record('0001', '0003', 'c00002')],
  'nx.test': [3, 0, ''], 'servfail.test': [2, 0, ''], 'formerr.test': [1, 0, ''], 'notimp.test': [4, 0, ''], 'refused.test': [5, 0, ''],
};
const answer = (query, flags = 0x8180) => {
  let end = 12;
  const labels = [];
  while (query[end]) { labels.push(query.toString('latin1', end + 1, end + 1 + query[end])); end += query[end] + 1; }
  const name = labels.join('.');
  const [code, count, records] = ANSWERS[name] ?? [0, 0, ''];
  const head = Buffer.from(query.subarray(0, 12));
  head.writeUInt16BE(flags | code, 2);
  head.writeUInt16BE(count, 6);
  return [name, Buffer.concat([head, query.subarray(12, end + 5), Buffer.from(records, 'hex')])];
};
const tcp = net.createServer((socket) => socket.on('data', (data) => {
  const [name, message] = answer(data.subarray(2));
  log('tcp ' + name);
  socket.end(Buffer.concat([Buffer.from([message.length >> 8, message.length & 255]), message]));
}));
const udp = dgram.createSocket('udp4', (query, { port, address }) => {
  const [name, message] = answer(query);
  const send = (bytes) => udp.send(bytes, port, address);
  if (name === 'silent.test') return;
  if (name === 'cut.test') return send(answer(query, 0x8380)[1]);
  if (name === 'spoof.test') {
    const other = Buffer.from(message);
    other[0] ^= 1;
    send(other);
  }
  send(message);
});
tcp.listen(0, '127.0.0.1', () => udp.bind(tcp.address().port, '127.0.0.1', async () => {
  const resolver = new dns.promises.Resolver({ timeout: 200, tries: 1 });
  resolver.setServers(['127.0.0.1:' + tcp.address().port]);
  const ask = async (call, name) => {
    try { log(`${call} ${name} ${JSON.stringify(await resolver[call](name))}`); } catch (e) { log(`${call} ${e.code} ${e.message}`); }
  };
  for (const name of ['a.test', 'a.test.', 'chain.test', 'spoof.test', 'cut.test', 'short.test', 'size.test', 'nx.test', 'empty.test', 'servfail.test', 'formerr.test', 'notimp.test', 'refused.test', 'silent.test', 'a..b', '']) await ask('resolve4', name);
  await ask('resolve6', 'aaaa.test');
  await ask('resolveMx', 'mx.test');
  await ask('resolveMx', 'loop.test');
  await ask('resolveTxt', 'txt.test');
  await ask('resolveSrv', 'srv.test');
  await ask('resolveSrv', 'packed.test');
  await ask('resolveCname', 'cname.test');
  await ask('resolveCname', 'odd.test');
  await ask('resolveNs', 'ns.test');
  await ask('resolveSoa', 'soa.test');
  await ask('resolveNaptr', 'naptr.test');
  await ask('reverse', '192.0.2.1');
  await ask('reverse', '192.0.2.9');
  try { resolver.setServers(['127.0.0.1', 'nowhere']); } catch (e) { log(`${e.code} ${e.message}`); }
  tcp.close();
  udp.close();
}));
