'use strict';
// N163: readline of a terminal: keys that edit a line, history, completion, SIGINT, and cursor sequences.
const { log } = require('./_lib');
const readline = require('readline');
const { PassThrough, Writable } = require('stream');

let written = '';
const output = new Writable({ write(chunk, _, callback) { written += chunk; callback(); } });
const input = new PassThrough();
const shown = () => { const text = JSON.stringify(written); written = ''; return text; };
const rl = readline.createInterface({
  input, output, terminal: true, history: ['old', 'older'], historySize: 4,
  completer: (line) => [['status', 'start', 'stop'].filter((word) => word.startsWith(line)), line],
});
rl.on('line', (line) => log('line ' + JSON.stringify(line)));
rl.on('history', (history) => log('history ' + history));
rl.on('SIGINT', () => log('SIGINT'));
rl.on('close', () => log('close'));
log('begin ' + shown());
rl.prompt();
log('prompt ' + shown());
const keys = [
  ['text', 'abc'], ['left', '\x1b[D'], ['insert', 'X'], ['home', '\x1b[H'], ['right', '\x1b[C'], ['delete', '\x1b[3~'], ['end', '\x1b[F'],
  ['backspace', '\x7f'], ['enter', '\r'], ['up', '\x1b[A'], ['up', '\x1b[A'], ['up', '\x1b[A'], ['up', '\x1b[A'], ['down', '\x1b[B'], ['enter', '\n'],
  ['ctrl-a', 'hello world\x01'], ['ctrl-k', '\x0b'], ['text', 'one two'], ['ctrl-w', '\x17'], ['ctrl-b', '\x02'], ['ctrl-d', '\x04'], ['ctrl-u', '\x15'],
  ['prefix', 'ol'], ['up', '\x1b[A'], ['up', '\x1b[A'], ['down', '\x1b[B'], ['down', '\x1b[B'], ['ctrl-e ctrl-u', '\x05\x15'],
  ['split', 'ä'], ['alt-left', 'bc de\x1bb'], ['alt-right', '\x1bf'], ['ctrl-h', '\x08'], ['blank', '\x05\x15   \r'], ['two lines', 'p\rq\r'],
  ['tab', 'st\t'], ['tab', 'at\t'], ['ctrl-l', '\x0c'], ['ctrl-c', '\x03'], ['unknown', '\x1b[5;9~\x1b[Z'], ['ctrl-u', '\x05\x15'], ['ctrl-d', '\x04'],
];
const next = () => {
  if (keys.length === 0) return after();
  const [name, bytes] = keys.shift();
  input.write(bytes);
  setTimeout(() => { log(`${name} ${shown()} ${JSON.stringify(rl.line)} ${rl.cursor}`); next(); }, 2);
};
next();
const after = () => {
  log('cursorTo ' + readline.cursorTo(output, 3) + shown());
  readline.cursorTo(output, 3, 4);
  readline.moveCursor(output, 1, -2);
  readline.moveCursor(output, -1, 2);
  readline.moveCursor(output, 0, 0);
  log('move ' + shown());
  readline.clearLine(output, -1);
  readline.clearLine(output, 1);
  readline.clearLine(output, 0);
  readline.clearScreenDown(output);
  log('clear ' + shown());
  const plain = readline.createInterface({ input: new PassThrough(), output, terminal: true });
  plain.on('close', () => log('plain close ' + shown()));
  plain.on('pause', () => log('plain pause'));
  plain.input.write('x\x03');
};
