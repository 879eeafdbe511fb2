'use strict';
// H72 H73: maxSockets and maxFreeSockets together: who waits, who is kept, who is closed, and in which order.
const { log } = require('./_lib');
const { listen } = require('./_http');
const http = require('http');
const count = (o) => Object.values(o).reduce((n, l) => n + l.length, 0);
let tags = 0;
const server = http.createServer((req, res) => {
  req.socket.tag = req.socket.tag || ++tags;
  log('server' + req.url + ' on-' + req.socket.tag);
  setTimeout(() => res.end(req.url), Number(req.url.split('-')[1]) || 0);
});
server.on('connection', (s) => s.on('close', () => log('server.closed-' + s.tag)));
listen(server, (port) => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 3, maxFreeSockets: 1 });
  const state = (what) => log(`${what} sockets-${count(agent.sockets)} free-${count(agent.freeSockets)} waiting-${count(agent.requests)}`);
  const get = (path, then) => {
    const req = http.get({ port, host: '127.0.0.1', agent, path }, (res) => {
      res.resume();
      res.on('end', () => state('end' + path + ' reused-' + req.reusedSocket));
    });
    req.on('close', () => { log('close' + path); if (then) then(); });
    return req;
  };
  get('/a-100');
  get('/b-200');
  get('/c-300');
  get('/d-50');
  state('asked');
  get('/e-400').on('socket', () => log('socket/e'));
  setTimeout(() => {
    state('later');
    get('/f-0', () => setTimeout(() => { state('last'); agent.destroy(); state('destroyed'); server.close(); }, 50));
    state('again');
  }, 900);
});
