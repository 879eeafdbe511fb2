'use strict';
// H111: a line feed later than crlfDelay is a line of its own; 100 ms at least.
const { log } = require('./_lib');
const readline = require('readline');
const { PassThrough } = require('stream');
function lines(name, crlfDelay, wait, next) {
  const input = new PassThrough();
  const seen = [];
  const rl = readline.createInterface({ input, crlfDelay });
  rl.on('line', (l) => seen.push(l));
  rl.on('close', () => { log(name + JSON.stringify(seen)); if (next) next(); });
  input.write('a\r');
  setTimeout(() => input.end('\nb\n\r\nc\r\rd'), wait);
}
lines('default-', undefined, 30, () =>
  lines('late-', undefined, 200, () =>
    lines('least-', 1, 50, () =>
      lines('long-', 400, 200, () =>
        lines('infinite-', Infinity, 200)))));
