'use strict';
// O9: a datagram socket receives with the context of its making, a send's callback has that of the send.
const { log, block, tmp } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const dgram = require('dgram');
const s = als.run('made', () => dgram.createSocket('udp4'));
als.run('on', () => {
  s.on('listening', () => at('listening'));
  s.on('message', (m) => { at('message-' + m); if (String(m) === '2') als.run('closer', () => s.close(() => at('closed'))); });
  s.on('close', () => at('close'));
});
als.run('bind', () => s.bind(0, '127.0.0.1', () => {
  at('bound');
  als.run('send1', () => s.send('1', s.address().port, '127.0.0.1', () => { at('sent-1');
    als.run('send2', () => s.send('2', s.address().port, '127.0.0.1', () => at('sent-2'))); }));
}));
