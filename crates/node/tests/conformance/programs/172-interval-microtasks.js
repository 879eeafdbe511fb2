'use strict';
// N48 N50 N9: an interval that is cleared by a microtask of its own drain, beside one that is cleared by a tick.
const { log } = require('./_lib');
let n = 0, m = 0;
const i = setInterval(() => { log('i' + ++n); if (n === 2) Promise.resolve().then(() => { clearInterval(i); log('cleared-i'); }); }, 20);
const j = setInterval(() => { log('j' + ++m); if (m === 3) process.nextTick(() => { clearInterval(j); log('cleared-j'); }); }, 20);
