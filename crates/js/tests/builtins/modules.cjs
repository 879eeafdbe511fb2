const { createRequire, isBuiltin, builtinModules, Module } = require('module');
const show = (f) => { try { console.log(f()); } catch (error) { console.log(error.name, error.code, error.message); } };
console.log(require('process') === process, require('node:console') === console, require('path/posix') === require('path'), require('util/types') === require('util').types);
console.log(isBuiltin('fs'), isBuiltin('node:fs'), isBuiltin('none'), isBuiltin('node:fs/promises'), ['fs', 'path', 'util/types', 'assert'].every((name) => builtinModules.includes(name)));
console.log(Module === require('module'), module instanceof Module, Module.builtinModules === builtinModules);
const own = createRequire(__filename);
console.log(own('./modules.json').found, own.resolve('./modules.json') === require.resolve('./modules.json'), createRequire(`${__dirname}/`)('./modules.json') === require('./modules.json'));
console.log(createRequire(`file://${__filename}`)('path') === require('path'));
show(() => createRequire('x'));
show(() => createRequire(5));
console.log(require('tty').isatty(77), require('tty').isatty(-1), require('tty').isatty('x'));
const { types } = require('util');
const values = [new Date(), new Map(), new Set(), new WeakMap(), new WeakSet(), Promise.resolve(), /a/, new Error('e'), new ArrayBuffer(1), new SharedArrayBuffer(1),
  new DataView(new ArrayBuffer(1)), new Uint8Array(1), new Float64Array(1), Buffer.alloc(1), async () => {}, function* () {}, async function* () {}, (function* () {})(), new Map().keys(),
  new Set().values(), (function () { return arguments; })(), Object(1), Object('s'), Object(true), Object(Symbol('s')), Object(1n), {}, [], null, undefined, 5, 's', { [Symbol.toStringTag]: 'Map' }, Object.create(Map.prototype)];
for (const value of values) {
  console.log(Object.keys(types).filter((name) => !/Key|EventTarget|External|Proxy/.test(name) && types[name](value)).sort().join(' ') || '-');
}
