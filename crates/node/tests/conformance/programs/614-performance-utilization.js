'use strict';
// O12 O13: differences of utilization, and a monitor that is switched and reset.
const { log, block } = require('./_lib');
const { performance, monitorEventLoopDelay } = require('perf_hooks');
const e0 = performance.eventLoopUtilization();
log([e0.idle, e0.active, e0.utilization].join());
setTimeout(() => {
  const a = performance.eventLoopUtilization();
  block(50);
  const b = performance.eventLoopUtilization();
  const d = performance.eventLoopUtilization(b, a);
  log('diff-' + (d.active >= 49 && d.idle === 0 && d.utilization === 1));
  const c = performance.eventLoopUtilization(a);
  log('since-' + (c.active >= 49 && c.utilization > 0.9));
  const same = performance.eventLoopUtilization(b, b);
  log('same-' + [same.idle, same.active, same.utilization].join());
  const back = performance.eventLoopUtilization(a, b);
  log('back-' + (back.active < 0));
  setTimeout(() => {
    const w = performance.eventLoopUtilization(b);
    log('idle-' + (w.idle >= 80 && w.utilization < 0.6));
    setImmediate(() => { const x = performance.eventLoopUtilization(); setImmediate(() => { const y = performance.eventLoopUtilization(x); log('busy-' + (y.idle < 5)); }); });
  }, 100);
}, 10);
const h = monitorEventLoopDelay({ resolution: 10 });
log([h.enable(), h.enable(), h.disable(), h.disable(), h.count].join());
h.enable();
setTimeout(() => { h.disable(); log([h.count > 3, h.min > 0, h.max >= h.min, h.mean >= h.min, h.percentile(50) > 0, h.exceeds].join()); h.reset(); log([h.count, h.max, h.exceeds].join()); }, 350);
