// Prints the ranges of src/readline/width/ranges.rs: the characters that Node's line editor takes for
// zero or two columns wide. Run it with Node 26.
const readline = require('readline');
const { PassThrough } = require('stream');

const rl = readline.createInterface({ input: new PassThrough(), output: new PassThrough(), terminal: true, prompt: '' });
const width = (code) => {
  rl.line = String.fromCodePoint(code);
  rl.cursor = rl.line.length;
  return rl.getCursorPos().cols;
};
const ranges = { 0: [], 2: [] };
for (let code = 0xa0; code <= 0x10ffff; code++) {
  if (code >= 0xd800 && code <= 0xdfff) continue;
  const list = ranges[width(code)];
  if (list === undefined) continue;
  if (list.at(-1)?.[1] === code - 1) list.at(-1)[1] = code;
  else list.push([code, code]);
}
const text = (list) => list.map((pair) => `(0x${pair[0].toString(16)}, 0x${pair[1].toString(16)})`).join(', ');
console.log(`ZERO ${text(ranges[0])}\nTWO ${text(ranges[2])}`);
rl.close();
