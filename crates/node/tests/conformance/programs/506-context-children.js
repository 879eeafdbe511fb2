'use strict';
// O9: a child's events and streams run with the context of its start.
// The program closes its output well before its exit: the two would race otherwise.
const { log, block, tmp } = require('./_lib');
const { AsyncLocalStorage, AsyncResource } = require('async_hooks');
const als = new AsyncLocalStorage();
const at = (where) => log(where + '-' + als.getStore());
const { spawn } = require('child_process');
const c = als.run('spawn', () => spawn('sh', ['-c', 'cat; exec >&-; sleep 0.2']));
als.run('on', () => {
  c.on('spawn', () => at('spawned'));
  c.stdout.on('data', (d) => at('out-' + d));
  c.stdout.on('end', () => at('out-end'));
  c.on('exit', () => at('exit'));
  c.on('close', () => { at('close'); als.exit(fails); });
});
setTimeout(() => als.run('writer', () => c.stdin.end('hi', () => at('written'))), 20);
function fails() {
  const f = als.run('bad', () => spawn('/nonexistent/program'));
  als.run('err', () => f.on('error', (e) => at('error-' + e.code)));
}
