'use strict';
// O12: the store in which an observer is called, and what it enters.
const { log } = require('./_lib');
const { performance, PerformanceObserver } = require('perf_hooks');
const { AsyncLocalStorage } = require('async_hooks');
const als = new AsyncLocalStorage();
const names = (l) => l.getEntries().map((e) => e.name).join();
const o = als.run('made', () => new PerformanceObserver((l) => { log('o-' + names(l) + '-' + als.getStore()); als.enterWith('entered'); process.nextTick(() => log('tick-' + als.getStore())); }));
als.run('observe', () => o.observe({ entryTypes: ['mark', 'measure'] }));
als.run('first', () => performance.mark('a', { startTime: 1 }));
als.run('second', () => performance.mark('b', { startTime: 2 }));
setImmediate(() => log('immediate-' + als.getStore()));
setTimeout(() => { als.run('third', () => performance.measure('m', { start: 1, end: 3 })); Promise.resolve().then(() => log('then')); process.nextTick(() => log('tick')); setImmediate(() => { log('im2'); o.disconnect(); performance.mark('c', { startTime: 3 }); }); }, 20);
const f = performance.timerify(function f(a) { return a + 1; });
const g = new PerformanceObserver((l) => { log('g-' + names(l)); g.disconnect(); });
setTimeout(() => { g.observe({ type: 'function' }); log(String(f(1))); f(3); log('after'); }, 60);
setTimeout(() => { log(performance.getEntries().map((e) => e.name).join()); performance.clearMarks('a'); performance.clearMeasures(); log(performance.getEntries().map((e) => e.name).join()); }, 120);
