const zlib = require('zlib');
const show = (f) => { try { console.log(f()); } catch (error) { console.log(error.name, error.code, error.message); } };
for (const value of [5, undefined, {}]) show(() => zlib.gzipSync(value));
for (const options of [5, { level: 'x' }, { level: 11 }, { level: NaN }, { level: Infinity }, { strategy: 9 }, { flush: -1 }, { finishFlush: 7 }, { windowBits: 7 }, { windowBits: -3 },
  { chunkSize: 5 }, { memLevel: 10 }, { dictionary: 5 }, { maxOutputLength: 'x' }]) {
  show(() => zlib.inflateSync(zlib.deflateSync('text', options)).toString());
}
show(() => zlib.gzip('x'));
show(() => zlib.crc32(5));
show(() => zlib.crc32('x', -1));
show(() => zlib.crc32(Buffer.from('hello')));
show(() => zlib.gunzipSync(zlib.gzipSync(new Uint16Array([1, 2]).buffer)).length);
console.log(zlib.createGzip() instanceof zlib.Gzip, new zlib.Gunzip() instanceof require('stream').Transform, zlib.Inflate.name, zlib.createUnzip.name);
console.log(zlib.constants.Z_BEST_COMPRESSION, zlib.codes.Z_BUF_ERROR);
zlib.deflate('hello', { level: 1 }, (error, packed) => {
  console.log(error, packed instanceof Buffer);
  zlib.inflate(packed, (error2, text) => {
    console.log(error2, text.toString());
    const gzip = zlib.createGzip({ level: 9 });
    const chunks = [];
    gzip.on('data', (chunk) => chunks.push(chunk));
    gzip.on('end', () => {
      console.log('end', gzip.bytesWritten, zlib.gunzipSync(Buffer.concat(chunks)).toString());
      const closed = zlib.createInflate();
      closed.close(() => console.log('closed', closed.destroyed));
    });
    gzip.write('one ');
    gzip.end('two');
  });
});
