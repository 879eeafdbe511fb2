'use strict';
// N152: the rules of a block list.
const net = require('net');
const { log } = require('./_lib');
const list = new net.BlockList();
list.addAddress('123.123.123.123');
list.addRange('10.0.0.1', '10.0.0.10');
list.addSubnet('8592:757c:efae:4e45::', 64, 'ipv6');
list.addSubnet('192.168.0.0', 16);
list.addAddress('::1', 'ipv6');
for (const [a, f] of [['123.123.123.123'], ['123.123.123.124'], ['10.0.0.3'], ['10.0.0.10'], ['10.0.0.11'], ['10.0.0.0'], ['222.111.111.222'], ['::ffff:7b7b:7b7b', 'ipv6'], ['::ffff:123.123.123.123', 'ipv6'], ['8592:757c:efae:4e45::7', 'ipv6'], ['8592:757c:efae:4e46::7', 'ipv6'], ['192.168.255.1'], ['192.169.0.1'], ['::1', 'ipv6'], ['::2', 'ipv6']]) log(a + ' ' + list.check(a, f || 'ipv4'));
log(list.rules.join('|'));
for (const f of [() => list.addRange('10.0.0.2', '10.0.0.1'), () => list.addSubnet('10.0.0.0', 33), () => list.addSubnet('::', 129, 'ipv6')]) {
  try { f(); } catch (e) { log(e.name + ' ' + e.code); }
}
