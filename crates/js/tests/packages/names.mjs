// The names that an import finds in CommonJS files of many forms.
import { mkdtempSync, rmSync, writeFileSync } from 'fs';
import { tmpdir } from 'os';
import { join } from 'path';

const cases = [
 "module.exports = { a, b: c, 'd': e, f: 1, g: 2 }; var a,c,e",
 "var a; module.exports = { a, f: 'x', g: 2 }",
 "module.exports = { b: require('fs'), c: 1 }",
 "module.exports = { f() {}, g: 1 }",
 "var q={z:1}; module.exports = { f: q.z, g: 1 }",
 "var q={z:1}; module.exports = { ...q, g: q }",
 "module.exports = { ...require('./r.cjs'), g: g }; var g",
 "exports.a = 1; module.exports.b = 2; exports['c'] = 3; if (0) { exports.d = 1 }",
 "Object.defineProperty(exports, '__esModule', { value: true }); exports.default = 5; Object.defineProperty(exports, 'x', { enumerable: true, get: function () { return q.x } }); var q = {x:1}; Object.defineProperty(exports, 'y', { value: 4 }); Object.defineProperty(exports, 'z', { get: () => 4 }); Object.defineProperty(exports, 'w', { enumerable: true, get() { return q.x } });Object.defineProperty(exports, 'v', { enumerable: true, get: () => q.x })",
 "module.exports = require('./r.cjs')",
 "module.exports = require('./r.cjs'); exports.q = 1",
 "var t={__exportStar(m,e){Object.assign(e,m)}}; t.__exportStar(require('./r.cjs'), exports); exports.q=1",
 "// exports.com = 1\n/* exports.com2 = 1 */ var s = 'exports.s = 1', t = `exports.t = 1`, r = /exports.r = 1/; exports.ok = 1",
 "0 && (module.exports = { a, b }); module.exports = Object.assign({}, {a:1,b:2}); var a,b",
 "exports.a = exports.b = void 0; exports.a == 1; exports.c === 1; var x = exports.d",
 "module.exports = function f() {}; module.exports.h = 1",
 "var _r = require('./r.cjs'); Object.keys(_r).forEach(function (key) { if (key === 'default' || key === '__esModule') return; exports[key] = _r[key]; });",
 "(function(){ exports.inner = 1 })(); this.viaThis = 1; const e = exports; e.alias = 1",
 "module.exports = class A {}; module.exports.default = module.exports",
 "var a=1; module.exports = { a, // comment\n 'b-c': a, /* x */ d: -a, }",
 "module.exports = { a: a, b: a => a, c: a }; var a",
 "module.exports = { async f() {}, a }; var a",
 "module.exports = { get a() { return 1 }, b }; var b",
 "let x = a => { exports.arrow = 1 }; x(); exports . spaced = 1; exports\n.nl = 1; var my = {}; my.exports = {}; my.exports.foo = 1",
 "var a = 1, b = 2; if (a) { exports.x = a / b; exports.y = 2 / 1 } var r = a.b ? /'/ : 1; exports.z = 3",
 "exports.unicode = 'a\\'b exports.no = 1'; exports.ok = \"exports.no2 = 1\"",
 "Object.defineProperty(module.exports, 'm', { enumerable: true, get: function get() { return q.default; } }); var q = {}; exports.if = 1",
 "'use strict'; var e = this && this.x || function (o, m) {}; module.exports = { a: e, b: e }; module.exports.c = e; exports = module.exports",
];
const folder = mkdtempSync(join(tmpdir(), 'names-'));
writeFileSync(join(folder, 'r.cjs'), 'exports.r1 = 1; exports.r2 = 2');
for (const [place, source] of cases.entries()) {
  const file = join(folder, `c${place}.cjs`);
  writeFileSync(file, source);
  try {
    console.log(place, Object.keys(await import(file)).join(' '));
  } catch (error) {
    console.log(place, error.name, source);
  }
}
rmSync(folder, { recursive: true });
