import defaults, * as cjs from 'cjs';
import { a, b, c, d, f } from 'cjs';
import both, { kind } from 'both';
import data from './data.json' with { type: 'json' };
import { join } from '#path';
import process from 'node:process';
const said = (text) => `${text}`.replaceAll(import.meta.dirname, '.').split('\n')[0];
console.log(Object.keys(cjs), a, b, c, d, f, defaults === cjs['module.exports'], both, kind, data, join('x', 'y'));
console.log(Object.keys(import.meta).join(), import.meta.main, said(import.meta.filename), said(import.meta.url));
for (const name of ['plain', 'plain/sub', 'plain/sub.js', 'both', 'both/sub', 'both/none', 'both/gone', 'both/up', '@sc/pat', '@sc/pat/x', '@sc/pat/f/y.js',
  '@sc/pat/private/z', 'esm', 'self', 'self/hidden', '#lib/one', '#both', '#other', '#bad', '#url', '#none', 'none', './none.mjs', './lib', './lib/', './self', 'fs', 'node:none', 'https://a.b/c',
  './typeless.js', './function.mjs', './throws.mjs', './data.json', import.meta.resolve('./self.cjs')]) {
  const shown = said(name);
  try {
    const found = await import(name);
    console.log(shown, Object.keys(found).filter(() => name !== 'fs'));
  } catch (error) {
    console.log(shown, error.name, error.code, said(error.message));
  }
  try {
    console.log('  resolve', said(import.meta.resolve(name)));
  } catch (error) {
    console.log('  resolve', error.name, error.code, said(error.message));
  }
}
for (const type of ['json', 'other']) {
  for (const name of ['./data.json', './self.cjs']) {
    await import(name, { with: { type } }).then((found) => console.log(type, found.default), (error) => console.log(type, error.code, said(error.message)));
  }
}
await import('./data.json', { with: { kind: 'json' } }).catch((error) => console.log(error.code, said(error.message)));
