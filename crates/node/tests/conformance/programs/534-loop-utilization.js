'use strict';
// O12 O13: differences of utilizations, a delay monitor that is reset and disabled.
const { log, block } = require('./_lib');
const { performance, monitorEventLoopDelay } = require('perf_hooks');
const elu = performance.eventLoopUtilization;
const zero = elu();
log([zero.idle, zero.active, zero.utilization].join());
block(5);
log([elu().active, elu(zero).utilization].join());
const h = monitorEventLoopDelay({ resolution: 2 });
setTimeout(() => {
  const a = elu();
  block(30);
  const b = elu();
  const d = elu(b, a);
  log(['blocked', d.active >= 29, d.idle === 0, d.utilization].join());
  log(['same', elu(a, a).utilization, elu(a, a).active].join());
  h.enable();
  setTimeout(() => {
    const c = elu(b);
    log(['waited', c.idle > 20, c.utilization < 0.6, Math.abs(c.utilization - c.active / (c.active + c.idle)) < 1e-9].join());
    block(40);
    setTimeout(() => {
      log(['seen', h.max >= 38e6, h.percentile(100) >= 38e6, h.count > 3, h.min >= 1e6, h.exceeds].join());
      h.reset();
      log(['reset', h.count, h.max, h.min === 9223372036854776000].join());
      log(['off', h.disable(), h.disable()].join());
      setTimeout(() => log('count-' + h.count), 10);
    }, 10);
  }, 50);
}, 10);
