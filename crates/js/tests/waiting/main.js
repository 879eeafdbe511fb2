'use strict';
// Prints in which tick each wait ends. One case after another, each in an immediate of its own.
const app = require('./app');
const cases = [];
const later = (f) => new Promise((resolve, reject) => queueMicrotask(() => f(resolve, reject)));
for (const fails of [false, true]) {
  const kind = fails ? 'rejected' : 'fulfilled';
  for (let count = 0; count <= 5; count++) {
    cases.push([`waits ${count} ${kind}`, () => app.waits(count, fails)]);
    cases.push([`waits for a settled one ${count} ${kind}`,
      () => app.waitsFor(fails ? Promise.reject(new RangeError('x')) : Promise.resolve('v'), count || 1)]);
    cases.push([`waits for a pending one ${count} ${kind}`,
      () => app.waitsFor(later((resolve, reject) => (fails ? reject(new RangeError('x')) : resolve('v'))), count || 1)]);
    cases.push([`waits for one that waits ${count} ${kind}`, () => app.waitsFor(app.waits(count, fails), 1)]);
  }
  cases.push([`settled ${kind}`, () => app.settled(fails)]);
  cases.push([`later ${kind}`, () => app.later(fails)]);
  cases.push([`waits for one of the module ${kind}`, () => app.waitsFor(app.settled(fails), 2)]);
}
const next = () => {
  const [name, start] = cases.shift() ?? [];
  if (!name) return;
  let tick = 0;
  let ticks = Promise.resolve();
  for (let i = 0; i < 20; i++) ticks = ticks.then(() => { tick++; });
  const end = (text) => console.log(`${name}: ${text} in tick ${tick}`);
  (async () => {
    try {
      end(await start());
    } catch (error) {
      end(error.name);
    }
  })();
  setImmediate(next);
};
next();
