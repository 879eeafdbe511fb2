'use strict';
// timerify: the value, the name, errors, histograms; only observed calls are entries.
const { log, block } = require('./_lib');
const { performance, PerformanceObserver, createHistogram } = require('perf_hooks');
function work(ms) { block(ms); return ms * 2; }
function fails() { throw new Error('no'); }
const h = createHistogram();
const w = performance.timerify(work, { histogram: h });
log(String(w(1)));
const o = new PerformanceObserver((l) => { log('told-' + l.getEntries().map((e) => [e.name, e.entryType, e.duration >= 2, e.duration < 1000].join(':')).join()); o.disconnect(); w(1); setImmediate(() => log('count-' + h.count)); });
o.observe({ entryTypes: ['function'] });
log(String(w(3)));
log(String(w(4)));
try { performance.timerify(fails)(); } catch (e) { log('thrown-' + e.message); }
log([performance.timerify(work).name, w.length, performance.timerify(work) === w].join());
log('histogram-' + [h.count, h.min > 0, h.max >= 3e6].join());
log('entries-' + performance.getEntriesByType('function').length);
