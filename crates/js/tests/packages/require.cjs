const said = (text) => `${text}`.replaceAll(__dirname, '.').split('\n')[0];
const show = (name, f) => {
  try { console.log(name, f()); } catch (error) { console.log(name, error.name, error.code, said(error.message)); }
};
for (const name of ['plain', 'plain/sub', 'plain/lib/start', 'both', 'both/sub', 'both/none', 'both/gone', 'both/up', 'both/package.json', '@sc/pat',
  '@sc/pat/x', '@sc/pat/f/y.js', '@sc/pat/private/z', '@sc/pat/../x', 'self', 'self/hidden', '#lib/one', '#both', '#other', '#bad', '#url', '#none', 'none', './none', './lib']) {
  show(name, () => require(name));
  show(`  ${name}`, () => said(require.resolve(name)));
}
show('an ES module', () => {
  const esm = require('esm');
  return [Object.keys(esm), esm.__esModule, typeof esm.default, esm.kind, esm === require('esm'), Object.prototype.toString.call(esm)];
});
show('two', () => require('./lib/two.mjs').two);
show('typeless', () => require('./typeless').typeless);
show('a function', () => require('./function.mjs')());
show('waits', () => require('./waits.mjs'));
show('throws', () => require('./throws.mjs'));
show('throws again', () => require('./throws.mjs'));
import('esm').then((esm) => { console.log('import', Object.keys(esm), esm.default === require('esm').default); return esm.late(); }).then((text) => console.log(text));
process.on('exit', (code) => console.log('exit', code));
