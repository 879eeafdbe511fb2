'use strict';
// Compares versions of Node with the recordings, which are those of Node 26.
//   node versions.js [--record] [--corpus NAME,...] NODE...
// Each NODE is a binary. It runs the whole corpus; a case whose trace differs from the recording in all of four runs is
// different. `versions/MAJOR.jsonl` has the different cases of a version with their traces, or with the digest of a long
// one: `--record` writes it, without it what changed since then is printed. Minutes for each binary: many programs sleep.
const fs = require('fs');
const os = require('os');
const path = require('path');
const { createHash } = require('crypto');
const { execFile } = require('child_process');

const RUNS = 4;
const JOBS = 6;
const BYTES = ['bytes', 'more_bytes', 'today_bytes'];
const at = (...names) => path.join(__dirname, ...names);
const lines = (file) => (fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '').split('\n').filter(Boolean);
const cases = (file) => lines(file).map((line) => JSON.parse(line));
const run = (node, argv, timeout = 20000) => new Promise((resolve) => {
  const options = { maxBuffer: 1 << 28, timeout, encoding: 'utf8' };
  // Some programs do not end on some versions.
  execFile(node, argv, options, (_, out) => resolve(out));
});

// Random peers and handlers differ in hundreds of cases: their digests show what changes.
const kept = (corpus, { name, trace }) => ({ corpus, name, trace: ['clients', 'servers'].includes(corpus) ? createHash('sha1').update(trace).digest('hex') : trace });

// One process for each program: its lines are the trace.
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'plversions-'));
const programs = {
  cases: () => fs.readdirSync(at('programs')).filter((name) => /^\d\d\d-.*\.js$/.test(name)).sort()
    .map((file) => ({ name: file.slice(0, -3), file: at('programs', file), trace: fs.readFileSync(at('programs', file.replace(/js$/, 'expected')), 'utf8') })),
  run: (node, { file }) => run(node, [file]),
};
const random = {
  cases: () => cases(at('fuzz', 'golden.jsonl')).map(({ seed, program, trace }) => ({ name: String(seed), program, trace })),
  async run(node, { name, program }) {
    const file = path.join(scratch, `${process.pid}-${name}.json`);
    fs.writeFileSync(file, JSON.stringify(program));
    const out = await run(node, ['--no-warnings', at('fuzz', 'interp.js'), file]);
    return out.trim().split(/\s+/).join(' ');
  },
};
// One process for all cases of a file.
const batch = (script, files, name, trace) => ({
  cases: () => files.flatMap((file) => cases(at('http', file + '.jsonl')).map((one) => ({ name: `${file} ${name(one)}`, one, trace: trace(one) }))),
  async all(node, wanted) {
    const file = path.join(scratch, `${process.pid}.jsonl`);
    fs.writeFileSync(file, wanted.map(({ one }) => JSON.stringify(one) + '\n').join(''));
    const out = (await run(node, [at('http', script), '--again', file], 300000)).split('\n').filter(Boolean);
    return wanted.map((_, i) => trace(JSON.parse(out[i])));
  },
});
const answer = ({ name, send, ...rest }) => JSON.stringify(Object.entries(rest).sort());
const traced = ({ trace }) => JSON.stringify(trace);
const CORPORA = {
  programs,
  random,
  bytes: batch('bytes.js', BYTES, ({ name }) => name, answer),
  clients: batch('clients.js', ['clients'], ({ seed }) => seed, traced),
  servers: batch('servers.js', ['servers'], ({ seed }) => seed, traced),
};

// The traces of one version that differ from the recordings.
async function differences(node, { cases, run, all }) {
  let left = cases();
  const total = left.length;
  for (let i = 0; i < RUNS && left.length; i++) {
    let traces;
    if (all) traces = await all(node, left);
    else {
      traces = new Array(left.length);
      let next = 0;
      const lane = async () => { for (let n = next++; n < left.length; n = next++) traces[n] = await run(node, left[n]); };
      await Promise.all(Array.from({ length: i ? 2 : JOBS }, lane));
    }
    left = left.map((one, n) => ({ ...one, now: traces[n] })).filter(({ trace, now }) => trace !== now);
  }
  return { total, found: left.map(({ name, now }) => ({ name, trace: now })) };
}

(async () => {
  const argv = process.argv.slice(2);
  const record = argv[0] === '--record' && argv.shift();
  const wanted = argv[0] === '--corpus' ? argv.splice(0, 2)[1].split(',') : Object.keys(CORPORA);
  for (const node of argv) {
    const version = (await run(node, ['--version'])).trim();
    const file = at('versions', version.match(/\d+/)[0] + '.jsonl');
    const before = cases(file);
    const now = before.filter(({ corpus }) => !wanted.includes(corpus));
    for (const corpus of wanted) {
      const { total, found } = await differences(node, CORPORA[corpus]);
      console.log(`${version} ${corpus}: ${total - found.length} equal, ${found.length} different`);
      for (const one of found) {
        const old = before.find((other) => other.corpus === corpus && other.name === one.name);
        if (!record && (!old || old.trace !== kept(corpus, one).trace)) console.log(`  ${old ? 'changed' : 'new'}: ${one.name}\n    ${one.trace.split('\n').join(' ')}`);
        now.push(kept(corpus, one));
      }
      for (const { name } of before.filter((other) => other.corpus === corpus && !found.some((one) => one.name === other.name))) console.log(`  equal now: ${name}`);
    }
    if (record) fs.writeFileSync(file, now.map((one) => JSON.stringify(one) + '\n').join(''));
  }
  fs.rmSync(scratch, { recursive: true, force: true });
})();
