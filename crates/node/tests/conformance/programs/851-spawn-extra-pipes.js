'use strict';
// N108: pipes beyond the standard streams: both directions, and 'close' waits for them.
const { log } = require('./_lib');
const { spawn } = require('child_process');
const c = spawn('sh', ['-c', 'read a <&3; echo "got $a" >&3; echo more >&4; exec 3>&- 3<&-; exit 6'], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe', 'ignore'] });
log([c.stdio.length, c.stdio[0], c.stdio[5], c.stdio[3] && 'socket'].join(' '));
const seen = [];
c.stdio[3].on('data', (d) => seen.push('3 ' + String(d).trim()));
c.stdio[4].on('data', (d) => seen.push('4 ' + String(d).trim()));
c.stdio[3].write('hello\n');
c.on('exit', (code) => seen.push('exit ' + code));
c.on('close', (code, signal) => { for (const s of seen.sort()) log(s); log('close ' + code + ' ' + signal + ' ' + c.stdio[3].destroyed + ' ' + c.stdio[4].destroyed); });
