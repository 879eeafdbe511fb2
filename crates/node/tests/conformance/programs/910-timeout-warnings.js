'use strict';
// N40: the warnings about delays: each one that is too long, the first negative one, the first that is no number.
const { log } = require('./_lib');
process.on('warning', (w) => log(w.name + ': ' + w.message.replace('\n', ' / ')));
for (const delay of [0, -0, 0.5, 1, '', ' 7 ', 2 ** 31 - 1]) clearTimeout(setTimeout(() => {}, delay));
for (const delay of [-7.5, -1, -Infinity, 'soon', NaN]) setTimeout(() => {}, delay);
for (const delay of [2 ** 31, 2147483648.5, 1e21, 1.5e300, Infinity]) setTimeout(() => {}, delay);
clearInterval(setInterval(() => {}, -3));
clearInterval(setInterval(() => {}, 2 ** 40));
(async () => {
  await require('timers/promises').setTimeout(2 ** 41);
  await require('timers/promises').setTimeout(-4);
  const worker = new (require('worker_threads').Worker)(`
    process.on('warning', (w) => require('worker_threads').parentPort.postMessage(w.message.replace('\\n', ' / ')));
    setTimeout(() => {}, -1e-7);
    setTimeout(() => {}, -2);
    setTimeout(() => {}, 'late');
  `, { eval: true });
  worker.on('message', (text) => log('worker: ' + text));
})();
