// The workloads that Node has, in Node's own way: `node node.mjs <workload> node <n>`, with the output of `costs`.

import { createSocket } from 'node:dgram';
import { appendFileSync, createReadStream, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';

const HOUR = 3_600_000;
const FILES = 10_000;
const FILE_SIZE = 1024;
/** Megabytes of the file that is read through. */
const BIG_FILE = 64;
const PAGE = 4096;
const BODY = 'Hello, world!';
/** A long answer: sixteen chunks, one mebibyte. */
const CHUNKS = 16;
const CHUNK = Buffer.alloc(64 * 1024, 'x');

const [name, , count] = process.argv.slice(2);
const n = Number(count);
const [kind, parameter] = name.split('/');
/** Connections, files in flight or closures that wait at once. */
const connections = Number.parseInt(parameter, 10);

class Meter {
  #rss = process.memoryUsage.rss();
  #switches = process.resourceUsage().voluntaryContextSwitches;
  #cpu = process.cpuUsage();
  #wall = process.hrtime.bigint();

  stop() {
    const wall = process.hrtime.bigint() - this.#wall;
    const { user, system } = process.cpuUsage(this.#cpu);
    print('wall', wall);
    print('cpu', (user + system) * 1000);
    print('kernel', system / Math.max(1, user + system));
    print('switches', process.resourceUsage().voluntaryContextSwitches - this.#switches);
    print('resident', Math.max(0, process.memoryUsage.rss() - this.#rss));
  }
}

const lines = [];
const print = (...words) => lines.push(words.join(' '));

/** Prints all and ends, whatever is still open. */
function end() {
  process.stdout.write(`${lines.join('\n')}\n`, () => process.exit(0));
}

/** Queues `n` closures in batches, of which the last of each queues the next; `schedule` puts one where it belongs. */
function closures(schedule) {
  const atOnce = connections || 1;
  const meter = new Meter();
  let sum = 0;
  const queueBatch = (left) => {
    if (left === 0) {
      if (sum !== (n / atOnce) * (atOnce - 1)) throw new Error('not all ran');
      meter.stop();
      end();
      return;
    }
    for (let i = 1; i < atOnce; i += 1) schedule(() => { sum += 1; });
    schedule(() => queueBatch(left - 1));
  };
  queueBatch(n / atOnce);
}

function setAndClear() {
  const meter = new Meter();
  for (let i = 0; i < n; i += 1) clearTimeout(setTimeout(() => {}, 100));
  meter.stop();
  end();
}

const farAway = () => HOUR + Math.floor(Math.random() * 4000);

async function timerDrop() {
  for (let i = 0; i < Number(parameter); i += 1) setTimeout(() => {}, farAway());
  const meter = new Meter();
  for (let i = 0; i < n; i += 1) clearTimeout(setTimeout(() => {}, farAway()));
  meter.stop();
  end();
}

function timerReplace() {
  const live = Number(parameter);
  const timers = Array.from({ length: live }, () => setTimeout(() => {}, farAway()));
  const meter = new Meter();
  for (let i = 0; i < n; i += 1) {
    const one = Math.floor(Math.random() * live);
    clearTimeout(timers[one]);
    timers[one] = setTimeout(() => {}, farAway());
  }
  meter.stop();
  end();
}

async function timerFire() {
  const live = Math.min(Number(parameter), n);
  const meter = new Meter();
  for (let batch = 0; batch < n / live; batch += 1) {
    const all = [];
    for (let i = 0; i < live; i += 1) all.push(sleep(2 + Math.random() * 10));
    await Promise.all(all);
  }
  meter.stop();
  end();
}

/** Promises that are pending until all are settled, each with an async function that waits for it. */
async function growPromise() {
  const live = Math.min(Number(parameter), n);
  const meter = new Meter();
  for (let batch = 0; batch < n / live; batch += 1) {
    const resolvers = [];
    const waiter = async () => {
      await new Promise((resolve) => { resolvers.push(resolve); });
    };
    const all = Array.from({ length: live }, waiter);
    for (const resolve of resolvers) resolve();
    await Promise.all(all);
  }
  meter.stop();
  end();
}

function announce(address) {
  process.stdout.write(`address ${address.address}:${address.port}\n`);
}

/** Ends when so many connections have come and gone. */
function serve(server, expected) {
  let open = 0;
  let meter;
  server.on('connection', (socket) => {
    open += 1;
    if (open === expected) meter = new Meter();
    socket.on('error', () => {});
    socket.on('close', () => {
      expected -= 1;
      if (expected === 0) {
        meter.stop();
        end();
      }
    });
  });
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => announce(server.address()));
}

/** From the first connection to the end of the last. */
function growConnection() {
  let meter;
  let open = n;
  const server = createServer({ noDelay: true }, (socket) => {
    meter ??= new Meter();
    socket.on('data', (bytes) => socket.write(bytes));
    socket.on('error', () => {});
    socket.on('close', () => {
      open -= 1;
      if (open > 0) return;
      meter.stop();
      end();
    });
  });
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => announce(server.address()));
}

function tcpEcho() {
  const server = createServer({ noDelay: true }, (socket) => socket.on('data', (bytes) => socket.write(bytes)));
  serve(server, connections);
}

function hello(_, response) {
  response.setHeader('content-length', BODY.length);
  response.end(BODY);
}

function long(_, response) {
  response.setHeader('content-length', CHUNKS * CHUNK.length);
  let left = CHUNKS;
  const source = new Readable({
    read() {
      left -= 1;
      this.push(left < 0 ? null : CHUNK);
    },
  });
  source.pipe(response);
}

function http(answer, expected = connections) {
  const server = createHttpServer(answer);
  server.keepAliveTimeout = HOUR;
  serve(server, expected);
}

/** Connections that have had their answer. */
function idleHttp() {
  const meter = new Meter();
  let answered = 0;
  const server = createHttpServer((request, response) => {
    hello(request, response);
    answered += 1;
    if (answered < n) return;
    setTimeout(() => {
      meter.stop();
      end();
    }, 20);
  });
  server.keepAliveTimeout = HOUR;
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => announce(server.address()));
}

function udpEcho() {
  const socket = createSocket('udp4');
  let meter;
  socket.on('message', (bytes, from) => {
    if (bytes.length === 0) {
      meter.stop();
      end();
      return;
    }
    socket.send(bytes, from.port, from.address);
  });
  socket.bind(0, '127.0.0.1', () => {
    meter = new Meter();
    announce(socket.address());
  });
}

async function readFiles() {
  const folder = mkdtempSync(join(tmpdir(), 'phaseloop-node-'));
  const paths = Array.from({ length: Math.min(n, FILES) }, (_, i) => join(folder, String(i)));
  for (const path of paths) writeFileSync(path, Buffer.alloc(FILE_SIZE, 'x'));
  const meter = new Meter();
  let next = 0;
  const reader = async () => {
    while (next < n) {
      const path = paths[next % paths.length];
      next += 1;
      const bytes = await readFile(path);
      if (bytes.length !== FILE_SIZE) throw new Error(path);
    }
  };
  await Promise.all(Array.from({ length: connections }, reader));
  meter.stop();
  rmSync(folder, { recursive: true });
  end();
}

async function readThrough() {
  const folder = mkdtempSync(join(tmpdir(), 'phaseloop-node-'));
  const path = join(folder, 'big');
  const megabyte = Buffer.alloc(1024 * 1024, 'x');
  for (let i = 0; i < BIG_FILE; i += 1) appendFileSync(path, megabyte);
  const meter = new Meter();
  for (let i = 0; i < n / BIG_FILE; i += 1) {
    let total = 0;
    for await (const bytes of createReadStream(path, { highWaterMark: 64 * 1024 })) total += bytes.length;
    if (total !== BIG_FILE * megabyte.length) throw new Error(path);
  }
  meter.stop();
  rmSync(folder, { recursive: true });
  end();
}

async function readPages() {
  const folder = mkdtempSync(join(tmpdir(), 'phaseloop-node-'));
  const path = join(folder, 'big');
  const megabyte = Buffer.alloc(1024 * 1024, 'x');
  for (let i = 0; i < BIG_FILE; i += 1) appendFileSync(path, megabyte);
  const pages = (BIG_FILE * megabyte.length) / PAGE;
  const files = [];
  for (let i = 0; i < connections; i += 1) files.push(await open(path));
  const meter = new Meter();
  await Promise.all(files.map(async (file, first) => {
    const page = Buffer.alloc(PAGE);
    for (let i = first; i < n; i += connections) {
      const { bytesRead } = await file.read(page, 0, PAGE, ((i * 40503) % pages) * PAGE);
      if (bytesRead !== PAGE) throw new Error(path);
    }
  }));
  meter.stop();
  rmSync(folder, { recursive: true });
  end();
}

async function idle() {
  for (let i = 0; i < 100; i += 1) setTimeout(() => {}, HOUR);
  await sleep(10);
  const meter = new Meter();
  await sleep(n);
  meter.stop();
  end();
}

function idleTimer() {
  const meter = new Meter();
  for (let i = 0; i < n; i += 1) setTimeout(() => {}, HOUR);
  meter.stop();
  end();
}

function idleConnection() {
  const meter = new Meter();
  let open = 0;
  const server = createServer((socket) => {
    socket.on('data', () => {});
    socket.on('error', () => {});
    open += 1;
    if (open < n) return;
    setTimeout(() => {
      meter.stop();
      end();
    }, 20);
  });
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => announce(server.address()));
}

/** Sleeps a millisecond at a time and prints how late it woke. */
async function victim() {
  const meter = new Meter();
  const late = new Map();
  for (let i = 0; i < n; i += 1) {
    const start = process.hrtime.bigint();
    await sleep(1);
    const by = process.hrtime.bigint() - start - 1_000_000n;
    const key = by > 1n ? by : 1n;
    late.set(key, (late.get(key) ?? 0) + 1);
  }
  meter.stop();
  for (const [by, times] of late) print('latency', by, times);
  end();
}

const BURST = 10_000;

/**
 * Bursts, one after the other. `queue(done)` queues the parts of one, each of which calls `done`, and returns when the
 * burst begins; a timer is due a millisecond later. Prints the time until the last part, and how late the timers were.
 */
async function bursts(queue) {
  const meter = new Meter();
  const late = new Map();
  let untilTheLast = 0;
  for (let i = 0; i < n; i += 1) {
    let begin;
    const parts = new Promise((resolve) => {
      let left = BURST;
      begin = queue(() => {
        left -= 1;
        if (left > 0) return;
        untilTheLast += performance.now() - begin;
        resolve();
      });
    });
    const beside = new Promise((resolve) => {
      setTimeout(() => {
        const by = Math.max(1, Math.round((performance.now() - begin - 1) * 1e6));
        late.set(by, (late.get(by) ?? 0) + 1);
        resolve();
      }, begin + 1 - performance.now());
    });
    await Promise.all([parts, beside]);
  }
  meter.stop();
  // Instead of the whole time, which the meter has printed.
  print('wall', Math.round(untilTheLast * 1e6));
  for (const [by, times] of late) print('latency', by, times);
  end();
}

const burstSleeps = () => bursts((done) => {
  const begin = performance.now() + 20;
  for (let i = 0; i < BURST; i += 1) setTimeout(done, 20);
  return begin;
});

const burstImmediates = () => bursts((done) => {
  const begin = performance.now();
  for (let i = 0; i < BURST; i += 1) setImmediate(done);
  return begin;
});

function spin(milliseconds) {
  const until = performance.now() + milliseconds;
  while (performance.now() < until);
}

function hog() {
  victim();
  const bite = () => {
    spin(0.02);
    setImmediate(bite);
  };
  bite();
}

async function wakeStorm() {
  victim();
  for (;;) {
    const until = performance.now() + 20;
    while (performance.now() < until) await null;
    await sleep(1);
  }
}

function acceptFlood() {
  victim();
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.destroy();
  });
  server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => announce(server.address()));
}

const workloads = {
  immediates: () => closures(setImmediate),
  next_tick: () => closures(process.nextTick),
  microtasks: () => closures(queueMicrotask),
  set_timeout: setAndClear,
  timer_drop: timerDrop,
  timer_replace: timerReplace,
  timer_fire: timerFire,
  grow_timer: timerFire,
  grow_promise: growPromise,
  grow_connection: growConnection,
  'burst/sleeps': burstSleeps,
  'burst/immediates': burstImmediates,
  tcp_echo: tcpEcho,
  tcp_rate: tcpEcho,
  udp_echo: udpEcho,
  http: () => http(hello),
  // wrk tries the address once before it connects.
  http_wrk: () => http(hello, connections + 1),
  http_body: () => http(long),
  read_files: readFiles,
  read_through: readThrough,
  read_pages: readPages,
  cold_start: () => {
    new Meter().stop();
    end();
  },
  idle,
  idle_timer: idleTimer,
  idle_connection: idleConnection,
  idle_http: idleHttp,
  'victim/alone': victim,
  'victim/hog': hog,
  'victim/wake_storm': wakeStorm,
  'victim/accept_flood': acceptFlood,
};

// A process that outlives its driver ends.
setTimeout(() => process.exit(3), 900_000).unref();
(workloads[name] ?? workloads[kind])();
