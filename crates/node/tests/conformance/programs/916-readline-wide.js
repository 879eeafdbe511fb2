'use strict';
// N163: lines of a terminal that wrap, wide characters and marks, undo and redo, candidates of a completion, Ctrl+Z.
const { log } = require('./_lib');
const readline = require('readline');
const { PassThrough, Writable } = require('stream');

let written = '';
const output = new Writable({ write(chunk, _, callback) { written += chunk; callback(); } });
output.columns = 20;
const input = new PassThrough();
const shown = () => { const text = JSON.stringify(written); written = ''; return text; };
const rl = readline.createInterface({
  input, output, terminal: true, prompt: '\x1b[1mask\x1b[0m> ',
  completer: (line) => [['status', 'start', '漢字', 'stop'].filter((word) => word.startsWith(line)), line],
});
rl.on('line', (line) => log('line ' + JSON.stringify(line)));
rl.on('SIGTSTP', () => log('SIGTSTP'));
rl.on('close', () => log('close'));
rl.prompt();
log('prompt ' + shown());
const keys = [
  ['full', '0123456789abcd'], ['wraps', 'e'], ['next', 'fgh'], ['home', '\x01'], ['inside', 'X'], ['right', '\x1b[C'], ['end', '\x05'],
  ['backspace', '\x7f\x7f\x7f\x7f'], ['left', '\x1b[D\x1b[D'], ['kill', '\x0b'], ['undo', '\x1f'], ['undo', '\x1f\x1f'], ['redo', '\x1e'], ['redo', '\x1e\x1e\x1e'],
  ['undo all', '\x1f'.repeat(40)], ['nothing', '\x1f'], ['redo', '\x1e'], ['enter', '\r'], ['nothing', '\x1f'],
  ['wide', '漢字'], ['left', '\x1b[D'], ['mark', 'e\u0301'], ['left', '\x1b[D'], ['delete', '\x1b[3~'], ['emoji', '\x05😀'], ['backspace', '\x7f'],
  ['wide at the edge', '\x15123456789012345'.slice(0, 15) + '漢x'], ['left', '\x1b[D\x1b[D'], ['word', '\x17'], ['undo', '\x1f'], ['clear', '\x0c'], ['enter', '\r'],
  ['up', '\x1b[A'], ['kill', '\x15'], ['up', '\x1b[A'], ['undo', '\x1f'], ['undo', '\x1f'], ['ctrl-u', '\x05\x15'],
  ['tab', '\t'], ['tab', '\t'], ['tab', 's\t\t'], ['undo', '\x1f'], ['ctrl-z', '\x1a'], ['ctrl-u', '\x05\x15'], ['long', 'a'.repeat(50)], ['home', '\x01'],
  ['word right', '\x1bf'], ['middle', '\x1b[D'.repeat(30)], ['enter', '\r'], ['ctrl-d', '\x04'],
];
keys.splice(8, 0, ['prompt', false], ['end', '\x05'], ['prompt', true]);
const next = () => {
  if (keys.length === 0) return;
  const [name, bytes] = keys.shift();
  if (name === 'prompt') rl.prompt(bytes);
  else input.write(bytes);
  setTimeout(() => { log(`${name} ${shown()} ${JSON.stringify(rl.line)} ${[...rl.line.slice(0, rl.cursor)].length}`); next(); }, 2);
};
next();
