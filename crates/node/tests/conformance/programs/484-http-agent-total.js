'use strict';
// H73: maxTotalSockets counts the sockets of all origins; a request to another origin takes the place of a closed socket.
const { log } = require('./_lib');
const { listen } = require('./_http');
const http = require('http');
const count = (o) => Object.values(o).reduce((n, l) => n + l.length, 0);
const make = (name) => http.createServer((req, res) => { log(name + req.url); setTimeout(() => res.end(name), 60 * Number(req.url.slice(1))); });
const one = make('one');
const two = make('two');
listen(one, (a) => listen(two, (b) => {
  const agent = new http.Agent({ maxTotalSockets: 2 });
  let left = 6;
  const get = (port, path) => {
    const req = http.get({ port, host: '127.0.0.1', agent, path }, (res) => {
      res.resume();
      res.on('end', () => log(`end${path} sockets-${count(agent.sockets)} waiting-${count(agent.requests)}`));
    });
    req.on('close', () => { if (--left === 0) { one.close(() => log('one.closed')); two.close(() => log('two.closed')); } });
  };
  get(a, '/1');
  get(a, '/2');
  get(b, '/3');
  get(b, '/4');
  get(a, '/5');
  get(b, '/6');
  log('waiting-' + count(agent.requests));
}));
