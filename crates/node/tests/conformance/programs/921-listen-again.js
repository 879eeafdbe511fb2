'use strict';
// N95, N97: a second listen: before the lookup it replaces the first one, later it throws; after an error or a close it is served.
const { log } = require('./_lib');
const net = require('net');
const servers = {};
const make = (name) => {
  const s = servers[name] = net.createServer();
  s.on('listening', () => log(`${name} listening ${s.listening} ${s.address() !== null}`));
  s.on('close', () => log(`${name} close ${s.listening} ${s.address() !== null}`));
  s.on('error', (e) => log(`${name} error ${e.code} ${s.listening}`));
  return s;
};
const listen = (name, ...args) => {
  try { servers[name].listen(...args); log(`${name} fine ${servers[name].listening}`); } catch (e) { log(`${name} ${e.code}`); }
};
const settle = () => new Promise((resolve) => setTimeout(resolve, 30));
const callback = (name) => () => log(`${name} callback`);
const steps = [
  (name) => { make(name); listen(name, 0, '127.0.0.1'); listen(name, 0, '127.0.0.1'); },
  (name) => { make(name); listen(name, 0); listen(name, 0); },
  (name) => { make(name); listen(name, 0, '127.0.0.1'); listen(name, 0); },
  (name) => { make(name); listen(name, 0); listen(name, 0, '127.0.0.1', callback(name)); },
  (name) => { const s = make(name); listen(name, 0, 'localhost'); s.close(); listen(name, 0); },
  (name) => { const s = make(name); listen(name, 0, '127.0.0.1'); s.close((e) => log(`${name} closed ${e && e.code}`)); },
  (name) => { const s = make(name); s.once('error', () => listen(name, 0, '127.0.0.1')); listen(name, 0, '1.2.3.4'); },
  (name) => { const s = make(name); listen(name, 0); s.close(); listen(name, 0); },
  (name) => { const s = make(name); s.once('listening', () => { listen(name, 0); s.close(); }); s.once('close', () => listen(name, 0, '127.0.0.1')); listen(name, 0, '127.0.0.1'); },
];
(async () => {
  for (const [at, step] of steps.entries()) {
    const name = 'abcdefghi'[at];
    step(name);
    await settle();
    log(`${name} end ${servers[name].listening}`);
    servers[name].close();
    await settle();
    log(`${name} address ${servers[name].address()}`);
  }
})();
