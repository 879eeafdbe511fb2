'use strict';
// N154: streams of zlib: the order of their events, flushes, chunks, errors, a reader that is slow, what follows the end.
const { log } = require('./_lib');
const zlib = require('zlib');
const { promisify } = require('util');
const { pipeline, Readable, Writable } = require('stream');

process.on('uncaughtException', (e) => log('uncaught ' + e.message));
const watch = (name, stream) => {
  for (const event of ['prefinish', 'finish', 'end', 'close', 'drain']) stream.on(event, () => log(`${name}.${event}`));
  stream.on('error', (e) => log(`${name}.error ${e.code} ${e.message}`));
  return stream;
};
const steps = [];
const step = (work) => steps.push(work);
const next = () => { const work = steps.shift(); if (work) { log('--'); work(next); } };

step((done) => { // the order of one write
  const pack = watch('pack', zlib.createGzip());
  const unpack = watch('unpack', zlib.createGunzip());
  pack.pipe(unpack);
  unpack.on('data', (b) => log('data ' + b));
  unpack.on('close', done);
  pack.write('hello, ', () => log('written'));
  pack.end('world', () => log('ended'));
  process.nextTick(() => log('tick'));
  setImmediate(() => {});
});
step((done) => { // flushes bring out what was written
  const pack = zlib.createDeflate();
  const unpack = zlib.createInflate();
  pack.pipe(unpack);
  unpack.on('data', (b) => log('data ' + b));
  pack.write('one');
  pack.flush(zlib.constants.Z_SYNC_FLUSH, () => {
    log('flushed ' + pack.bytesWritten);
    setTimeout(() => {
      pack.write('two');
      pack.flush(() => {
        log('flushed ' + pack.bytesWritten);
        setTimeout(() => {
          pack.end('three');
          pack.flush(() => log('flushed at the end'));
          unpack.on('close', () => { pack.flush(() => { log('flushed behind the end'); done(); }); });
        }, 50);
      });
    }, 50);
  });
});
step((done) => { // chunks of output, and a reader that is slow
  const packed = zlib.gzipSync(Buffer.alloc(1000000));
  const unpack = watch('slow', zlib.createGunzip({ chunkSize: 1000, highWaterMark: 4000 }));
  unpack.end(packed);
  setTimeout(() => {
    log(`buffered ${unpack.readableLength}`);
    log(`read ${unpack.read(500).length} ${unpack.read(200).length}`);
    setTimeout(() => {
      log(`buffered ${unpack.readableLength}`);
      let length = 700, chunks = 0;
      unpack.on('data', (b) => { length += b.length; chunks++; });
      unpack.on('close', () => { log(`all ${length} ${chunks > 990}`); done(); });
    }, 100);
  }, 100);
});
step((done) => { // errors
  const unpack = watch('bad', zlib.createGunzip());
  unpack.on('data', (b) => log('data ' + b));
  unpack.on('close', done);
  unpack.write('rubbish', (e) => log('written ' + e));
  unpack.write('more', (e) => log('written ' + (e && e.code)));
  unpack.end(() => log('ended'));
});
step((done) => { // cut off
  const unpack = watch('cut', zlib.createGunzip());
  unpack.on('data', (b) => log('data ' + b));
  unpack.on('close', done);
  unpack.end(zlib.gzipSync('hello').subarray(0, 16));
});
step((done) => { // bytes behind the end
  const unpack = watch('behind', zlib.createInflate());
  unpack.on('data', (b) => log('data ' + b));
  unpack.on('close', () => { log('used ' + (unpack.bytesWritten === packed.length)); done(); });
  const packed = zlib.deflateSync('hello');
  unpack.write(packed);
  unpack.write('rubbish');
  unpack.end('more');
});
step((done) => { // bytes behind the end, refused
  const unpack = watch('refused', zlib.createInflate({ rejectGarbageAfterEnd: true }));
  unpack.on('data', (b) => log('data ' + b));
  unpack.on('close', done);
  unpack.end(Buffer.concat([zlib.deflateSync('hello'), Buffer.from('rubbish')]));
});
step((done) => { // members in pieces
  const unpack = watch('members', zlib.createUnzip());
  unpack.on('data', (b) => log('data ' + b));
  unpack.on('close', done);
  for (const byte of Buffer.concat([zlib.gzipSync('he'), zlib.gzipSync('llo'), Buffer.alloc(3)])) unpack.write(Buffer.from([byte]));
  unpack.end();
});
step((done) => { // closed
  const pack = watch('closed', zlib.createGzip());
  pack.on('data', () => log('data'));
  pack.on('close', done);
  pack.write('hello', () => log('written'));
  pack.close();
});
step((done) => { // a pipeline that fails
  const source = Readable.from([Buffer.from('rubbish'), Buffer.from('more')]);
  const sink = new Writable({ write(chunk, _, callback) { log('sink ' + chunk); callback(); } });
  pipeline(source, zlib.createBrotliDecompress(), sink, (e) => { log(`pipeline ${e.code} ${sink.destroyed}`); done(); });
});
step((done) => { // functions
  const turn = (name) => (e, b) => log(`${name} ${e ? e.code : b}`);
  const packed = zlib.gzipSync('hello');
  zlib.gunzip(packed, turn('gunzip'));
  setTimeout(() => {
    zlib.unzip('rubbish', turn('unzip'));
    setTimeout(() => {
      zlib.gunzip(zlib.gzipSync(Buffer.alloc(100000)), { maxOutputLength: 50000 }, turn('limit'));
      setTimeout(async () => {
        log('promise ' + await promisify(zlib.inflateRaw)(await promisify(zlib.deflateRaw)('hello')));
        await promisify(zlib.brotliDecompress)('').catch((e) => log('promise ' + e.code));
        done();
      }, 50);
    }, 50);
  }, 50);
});
next();
