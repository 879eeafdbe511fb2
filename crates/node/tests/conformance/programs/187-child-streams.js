'use strict';
// N102: a child that echoes its input; its pipes close before it does.
const { log } = require('./_lib');
const { spawn } = require('child_process');
const c = spawn('cat');
c.on('spawn', () => log('spawn'));
c.stdout.on('data', (d) => { log('data-' + String(d).trim()); c.stdin.end(); });
c.stdout.on('end', () => log('out-end'));
c.stdin.on('finish', () => log('in-finish'));
c.stdin.write('hello\n', () => log('written'));
c.on('close', (code, signal) => log('close-' + code + '-' + signal));
