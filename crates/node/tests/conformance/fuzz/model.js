'use strict';
// Executable model of Node 26 ordering (rules N… of tests/NODE.md).
//
// It interprets the program format of FORMAT.md on a *virtual* clock. It is
// used (a) by gen.js, to reject programs whose order depends on machine noise,
// (b) as an independent oracle that must agree with real Node, (c) by
// mutants.js, to measure what the golden corpus can detect.
//
// All real-time influence enters through clock reads, so a noisy machine is
// modelled by adding a stall before chosen clock reads.

class Reject extends Error {}          // program unsuitable for the corpus
class Thrown extends Error {           // the format's `throw` action
  constructor(id) { super(id); this.id = id; }
}

const FS_SETTLE = 30;                  // ms every `fs` action blocks

class Sim {
  constructor(program, opt = {}) {
    this.program = program;
    this.stallAt = opt.stall || (() => 0);
    this.mut = opt.mut || new Set();
    this.clk = opt.start === undefined ? 1000.4 : opt.start;
    this.maxTrace = opt.maxTrace || 400;
    this.maxMs = opt.maxMs || 5000;
    this.t0 = this.clk;
    this.reads = 0;
    this.iter = 0;
    this.trace = [];
    this.times = [];                   // virtual ms of each token
    this.loopTime = Math.floor(this.clk);

    this.labels = new Map();           // id -> newest timer / immediate / pipe
    this.deferred = new Map();
    this.budget = new Map();           // refresh budgets

    this.ticks = [];
    this.micros = [];
    this.tickFlag = false;

    this.lists = new Map();            // duration -> list
    this.listOrd = 0;
    this.nextExpiry = Infinity;
    this.timerRefs = 0;
    this.uvTimer = { active: false, at: 0, ref: false };

    this.immQ = [];
    this.immRest = [];                 // left over after an uncaught throw
    this.immOutstanding = false;
    this.immCount = 0;
    this.immRefs = 0;
    this.idle = false;

    this.reqs = 0;
    this.fsDone = [];
    this.pipes = new Set();
    this.closing = [];
    this.seq = 0;
  }

  // ---- clock -------------------------------------------------------------
  read() {
    this.reads++;
    this.clk += 0.004 + this.stallAt(this.reads);
    if (this.clk - this.t0 > this.maxMs) throw new Reject('too long');
    return Math.floor(this.clk);
  }
  updateTime() { this.loopTime = this.read(); }
  getNow() {                           // refreshes the loop clock (N38)
    if (this.mut.has('cachedStart')) return this.loopTime;
    this.updateTime();
    return this.loopTime;
  }
  block(ms) {
    const from = this.clk;
    this.read();
    this.clk = Math.max(this.clk, from + ms);
    this.read();
  }

  // ---- output ------------------------------------------------------------
  log(tok) {
    this.trace.push(tok);
    this.times.push(Math.round((this.clk - this.t0) * 10) / 10);
    if (this.trace.length > this.maxTrace) throw new Reject('trace too long');
  }
  uncaught(err) {
    if (!(err instanceof Thrown)) throw err;
    this.log('!' + err.id);
    this.addImmediate(() => {}, null); // keeps the next check phase non-empty
  }

  // ---- tick and microtask lanes -------------------------------------------
  nextTick(fn) {
    if (this.ticks.length === 0) this.tickFlag = true;
    this.ticks.push(fn);
  }
  runMicros() {
    while (this.micros.length) {
      const fn = this.micros.shift();
      try { fn(); } catch (e) { this.uncaught(e); }
    }
  }
  drainTicks() {                       // may throw out of a tick
    if (this.mut.has('microFirst')) this.runMicros();
    do {
      while (this.ticks.length) {
        this.ticks.shift()();
        if (this.mut.has('microBetweenTicks')) this.runMicros();
        if (this.mut.has('oneTickPerDrain')) break;
      }
      this.runMicros();
    } while (this.ticks.length);
    this.tickFlag = false;
  }
  runNextTicks() {                     // between callbacks of one phase
    if (!this.tickFlag) this.runMicros();
    if (!this.tickFlag) return;
    this.drainTicks();
  }
  closeScope() {
    if (!this.tickFlag) this.runMicros();
    if (!this.tickFlag) return;
    try { this.drainTicks(); } catch (e) { this.uncaught(e); }
  }
  scope(fn, drainOnThrow) {
    let ok = true;
    try { fn(); } catch (e) { ok = false; this.uncaught(e); }
    if (ok || drainOnThrow || this.mut.has('throwDrains')) this.closeScope();
  }

  // ---- timers --------------------------------------------------------------
  incTimerRef() { if (this.timerRefs++ === 0) this.uvTimer.ref = true; }
  decTimerRef() { if (--this.timerRefs === 0) this.uvTimer.ref = false; }
  armUv(at) { this.uvTimer.active = true; this.uvTimer.at = at; }

  unlink(t) {
    if (!t.list) return;
    t.list.q.splice(t.list.q.indexOf(t), 1);
    t.list = null;
  }
  insert(t, start) {
    const ms = Math.trunc(t.dur);
    t.start = start;
    const key = this.mut.has('plainHeap') ? 'k' + this.seq++ : ms;
    let l = this.lists.get(key);
    if (!l) {
      l = { key, ms, expiry: start + ms, ord: this.listOrd++, q: [] };
      this.lists.set(key, l);
      if (this.nextExpiry > l.expiry) {
        this.armUv(this.loopTime + ms);
        this.nextExpiry = l.expiry;
      }
    }
    this.unlink(t);
    if (this.mut.has('sortedLists')) {
      let i = l.q.length;
      while (i > 0 && l.q[i - 1].start > start) i--;
      l.q.splice(i, 0, t);
    } else {
      l.q.push(t);
    }
    t.list = l;
  }
  addTimer(fn, ms, repeat) {
    if (!(ms >= 1 && ms <= 0x7fffffff)) ms = 1;
    const t = { kind: 'timer', fn, dur: ms, repeat: repeat ? ms : 0,
                refed: true, destroyed: false, list: null, start: 0 };
    this.incTimerRef();
    this.insert(t, this.getNow());
    return t;
  }
  clearTimer(t) {
    if (!t.fn) return;
    t.fn = null;
    if (t.destroyed) return;
    t.destroyed = true;
    const l0 = t.list;
    this.unlink(t);
    if (t.refed || this.mut.has('dropUnrefLists')) {
      const key = this.mut.has('plainHeap') ? (l0 && l0.key) : Math.trunc(t.dur);
      const l = this.lists.get(key);
      if (l && l.q.length === 0) this.lists.delete(key);
      else if (l && this.mut.has('freshExpiry')) l.expiry = l.q[0].start + l.ms;
    }
    if (t.refed) this.decTimerRef();
    t.dur = -1;
  }
  refreshTimer(t) {
    if (t.dur < 0) return;
    if (this.mut.has('plainHeap') && t.list) {
      const l = t.list; this.unlink(t); this.lists.delete(l.key);
    }
    if (this.mut.has('refreshInPlace') && t.list) { t.start = this.getNow(); return; }
    this.insert(t, this.getNow());
    if (t.destroyed) {
      t.destroyed = false;
      if (t.refed) this.incTimerRef();
    }
  }
  setRef(t, on) {
    if (t.kind === 'timer') {
      if (t.refed === on) return;
      t.refed = on;
      if (!t.destroyed) { if (on) this.incTimerRef(); else this.decTimerRef(); }
    } else if (t.kind === 'imm') {
      if (t.refed === null || t.refed === on) return;
      t.refed = on;
      if (on) { if (this.immRefs++ === 0) this.idle = true; }
      else if (--this.immRefs === 0) this.idle = false;
    }
  }
  firstList() {
    let best = null;
    for (const l of this.lists.values())
      if (!best || l.expiry < best.expiry ||
          (l.expiry === best.expiry && l.ord < best.ord)) best = l;
    return best;
  }
  processTimers(now) {
    this.nextExpiry = Infinity;
    let ran = false;
    let l;
    while ((l = this.firstList())) {
      if (this.mut.has('liveNow')) now = this.getNow();
      if (l.expiry > now) {
        this.nextExpiry = l.expiry;
        return this.timerRefs > 0 ? l.expiry : -l.expiry;
      }
      if (ran) { if (!this.mut.has('noDrainTimers')) this.runNextTicks(); }
      else ran = true;
      this.runList(l, now);
    }
    return 0;
  }
  runList(l, now) {
    let ran = false;
    while (l.q.length) {
      if (this.mut.has('liveNow')) now = this.getNow();
      const t = l.q[0];
      if (now - t.start < l.ms) {
        l.expiry = Math.max(t.start + l.ms, now + 1);
        l.ord = this.listOrd++;
        return;
      }
      if (ran) { if (!this.mut.has('noDrainTimers')) this.runNextTicks(); }
      else ran = true;
      if (this.mut.has('recheckAfterTicks') && now - t.start < l.ms) continue;
      this.unlink(t);
      if (!t.fn) {
        if (!t.destroyed) { t.destroyed = true; if (t.refed) this.timerRefs--; }
        continue;
      }
      const start = t.repeat ? this.getNow() : 0;
      try {
        t.fn();
      } finally {
        if (t.repeat && t.dur !== -1) {
          t.dur = t.repeat;
          this.insert(t, this.mut.has('intervalFromEnd') ? this.getNow() :
                      this.mut.has('intervalFixedGrid') ? t.start + t.repeat : start);
        } else if (!t.list && !t.destroyed) {
          t.destroyed = true;
          if (t.refed) this.timerRefs--;
        }
      }
      if (this.mut.has('oneTimerPerList')) {
        if (l.q.length) { l.expiry = l.q[0].start + l.ms; l.ord = this.listOrd++; return; }
      }
    }
    if (this.lists.get(l.key) === l) this.lists.delete(l.key);
  }
  uvTimerFired() {
    const now = this.getNow();
    let r;
    for (;;) {
      try { r = this.processTimers(now); break; } catch (e) {
        this.uncaught(e);
        if (this.mut.has('throwDrains')) this.closeScope();
      }
    }
    if (r !== 0) {
      const d = Math.abs(r) - this.loopTime;
      this.armUv(this.loopTime + (d > 0 ? d : 1));
      this.uvTimer.ref = r > 0;
    } else {
      this.uvTimer.ref = false;
    }
    this.closeScope();
  }
  phaseTimers() {
    while (this.uvTimer.active && this.uvTimer.at <= this.loopTime) {
      this.uvTimer.active = false;
      this.uvTimerFired();
      // What has become due meanwhile waits for the next turn (N47).
      if (!this.mut.has('timersReentered')) break;
    }
  }

  // ---- immediates ------------------------------------------------------------
  addImmediate(fn) {
    const im = { kind: 'imm', fn, refed: true, destroyed: false };
    if (this.immRefs++ === 0) this.idle = true;
    this.immCount++;
    this.immQ.push(im);
    return im;
  }
  clearImm(im) {
    if (im.destroyed) return;
    if (this.mut.has('clearImmLate') && this.immRest.includes(im)) return;
    im.destroyed = true;
    this.immCount--;
    if (im.refed && --this.immRefs === 0) this.idle = false;
    im.refed = null;
    im.fn = null;
    const i = this.immQ.indexOf(im);
    if (i >= 0) this.immQ.splice(i, 1);
    const j = this.immRest.indexOf(im);
    if (j >= 0) this.immRest.splice(j, 1);
  }
  processImmediates() {
    if (this.immRest.length === 0) {
      this.immRest = this.immQ;
      this.immQ = [];
      this.immOutstanding = true;
    }
    let ran = false;
    while (this.immRest.length) {
      if (ran) { if (!this.mut.has('noDrainImmediates')) this.runNextTicks(); }
      else ran = true;
      if (!this.immRest.length) break;
      const im = this.immRest.shift();
      const fn = im.fn || (() => {});
      if (!im.destroyed) {
        im.destroyed = true;
        this.immCount--;
        if (im.refed) this.immRefs--;
        im.refed = null;
      }
      im.fn = null;
      fn();
      if (this.mut.has('immediatesSamePhase')) {
        this.immRest.push(...this.immQ.splice(0));
      }
    }
    this.immOutstanding = false;
  }
  phaseCheck() {
    // What an uncaught throw left in the lanes waits for a callback (N66).
    if (this.mut.has('checkDrains')) this.closeScope();
    if (this.immCount === 0) return;
    do {
      this.scope(() => this.processImmediates());
      if (this.mut.has('lastThrowWaits') && this.immRest.length === 0) {
        this.immOutstanding = false;
      }
    } while (this.immOutstanding);
    if (this.immRefs === 0) this.idle = false;
  }

  // ---- poll -----------------------------------------------------------------
  handlesActive() {
    return (this.uvTimer.active && this.uvTimer.ref) || this.idle ||
           this.reqs > 0 || this.pipes.size > 0;
  }
  alive() { return this.handlesActive() || this.closing.length > 0; }

  phasePoll() {
    let timeout = 0;
    if (this.handlesActive() && !this.idle && this.closing.length === 0) {
      timeout = !this.uvTimer.active ? -1 :
        Math.max(0, this.uvTimer.at - this.loopTime);
    }
    const base = this.loopTime;
    const ready = [...this.pipes].filter((p) => p.bytes > 0);
    const sources = ready.length + (this.fsDone.length ? 1 : 0);
    if (sources > 1) throw new Reject('several poll sources ready');
    if (sources === 0) {
      if (timeout < 0) throw new Reject('deadlock');
      // One non-blocking look first; the sleep is what then remains.
      this.updateTime();
      let left = timeout > 0 ? timeout - (this.loopTime - base) : 0;
      while (left > 0) {
        this.clk += left;
        this.updateTime();
        left = timeout - (this.loopTime - base);
      }
      return;
    }
    this.updateTime();
    if (this.fsDone.length) {
      const batch = this.fsDone;
      this.fsDone = [];
      for (const fn of batch) {
        this.reqs--;
        if (this.mut.has('noDrainFs')) {
          try { fn(); } catch (e) { this.uncaught(e); }
        } else {
          this.scope(fn);
        }
      }
      if (this.mut.has('noDrainFs')) this.closeScope();
    } else {
      const p = ready[0];
      const n = p.bytes;
      p.bytes = 0;
      this.scope(() => p.onData(n));
    }
    if (this.mut.has('timersAfterPoll')) { this.updateTime(); this.phaseTimers(); }
  }

  phaseClose() {
    const batch = this.closing;
    this.closing = [];
    if (this.mut.has('closeFifo')) batch.reverse();
    for (const fn of batch) this.scope(fn);
  }

  // ---- loop -----------------------------------------------------------------
  uvRun() {
    let r = this.alive();
    if (!r) this.updateTime();
    if (r) { this.updateTime(); if (!this.mut.has('noFirstTimers')) this.phaseTimers(); }
    while (r) {
      if (++this.iter > 600) throw new Reject('too many iterations');
      this.phasePoll();
      if (this.mut.has('closeBeforeCheck')) this.phaseClose();
      this.phaseCheck();
      this.phaseClose();
      this.updateTime();
      this.phaseTimers();
      r = this.alive();
    }
  }
  run() {
    this.scope(() => this.exec(this.program.main), true);
    const be = (this.program.beforeExit || []).slice();
    for (;;) {
      this.uvRun();
      if (this.alive()) continue;
      this.scope(() => {
        this.log('beforeExit');
        const acts = be.shift();
        if (acts) this.exec(acts);
      });
      if (!this.alive()) break;
    }
    this.log('exit');
    return this.trace;
  }

  // ---- promise core -----------------------------------------------------------
  settle(p) {
    if (p.done) return;
    p.done = true;
    for (const r of p.reactions) this.micros.push(r);
    p.reactions = [];
  }
  when(p, fn) { if (p.done) this.micros.push(fn); else p.reactions.push(fn); }
  newPromise() { return { done: false, reactions: [] }; }
  getDeferred(id) {
    if (!this.deferred.has(id)) this.deferred.set(id, this.newPromise());
    return this.deferred.get(id);
  }
  later(n, fn) {                        // run fn n microtask ticks from now
    if (n <= 1) this.micros.push(fn);
    else this.micros.push(() => this.later(n - 1, fn));
  }

  startFs(fn) {
    this.reqs++;
    this.block(FS_SETTLE);
    this.fsDone.push(fn);
  }

  runAsync(spec) {
    const p = this.newPromise();
    let awaited = 0;
    const step = (i) => {
      for (; i < spec.steps.length; i++) {
        const s = spec.steps[i];
        if (s.op === 'await') {
          this.awaitStep(s, () => {
            this.log(spec.id + '.' + (++awaited));
            step(i + 1);
          });
          return;
        }
        this.act(s);
      }
      if (spec.ret === 'promise' && !this.mut.has('returnPromise1'))
        this.later(2, () => this.settle(p));
      else this.settle(p);
    };
    this.log(spec.id + '>');
    step(0);
    return p;
  }
  awaitStep(s, cont) {
    const p = this.newPromise();
    switch (s.kind) {
      case 'value': case 'resolved':
        this.later(this.mut.has('await3') ? 3 : 1, cont); return;
      case 'thenable':
        this.later(this.mut.has('thenable1') ? 1 : 2, cont); return;
      case 'tick': this.nextTick(() => this.settle(p)); break;
      case 'sleep': this.addTimer(() => this.settle(p), s.ms, false); break;
      case 'immediate': this.addImmediate(() => this.settle(p)); break;
      case 'fs': this.startFs(() => this.settle(p)); break;
      case 'defer': this.when(this.getDeferred(s.of), cont); return;
      case 'async': this.when(this.runAsync(s), cont); return;
      case 'all': {
        const kids = s.of.map((k) => this.runAsync(k));
        let left = kids.length;
        for (const k of kids) this.when(k, () => { if (--left === 0) this.settle(p); });
        break;
      }
      case 'race': {
        const kids = s.of.map((k) => this.runAsync(k));
        for (const k of kids) this.when(k, () => this.settle(p));
        break;
      }
      default: throw new Error('bad await kind ' + s.kind);
    }
    this.when(p, cont);
  }

  // ---- actions ------------------------------------------------------------------
  exec(list) { for (const a of list || []) this.act(a); }
  act(a) {
    switch (a.op) {
      case 'log': this.log(a.id); break;
      case 'block': this.block(a.ms); break;
      case 'tick': this.nextTick(() => { this.log(a.id); this.exec(a.do); }); break;
      case 'micro': this.micros.push(() => { this.log(a.id); this.exec(a.do); }); break;
      case 'timeout': {
        const t = this.addTimer(() => { this.log(a.id); this.exec(a.do); }, a.ms, false);
        this.labels.set(a.id, t);
        break;
      }
      case 'interval': {
        let k = 0;
        const t = this.addTimer(() => {
          this.log(a.id + '#' + (++k));
          if (k >= a.n) this.clearTimer(t);
          this.exec(a.do);
        }, a.ms, true);
        this.labels.set(a.id, t);
        break;
      }
      case 'immediate': {
        const im = this.addImmediate(() => { this.log(a.id); this.exec(a.do); });
        this.labels.set(a.id, im);
        break;
      }
      case 'clear': {
        const h = this.labels.get(a.of);
        if (h && h.kind === 'timer') this.clearTimer(h);
        else if (h && h.kind === 'imm') this.clearImm(h);
        break;
      }
      case 'refresh': {
        const h = this.labels.get(a.of);
        const used = this.budget.get(a.id) || 0;
        if (!h || h.kind !== 'timer' || used >= a.max) break;
        this.budget.set(a.id, used + 1);
        this.refreshTimer(h);
        break;
      }
      case 'ref': case 'unref': {
        const h = this.labels.get(a.of);
        if (h && (h.kind === 'timer' || h.kind === 'imm')) this.setRef(h, a.op === 'ref');
        break;
      }
      case 'chain': {
        const link = (k) => {
          this.log(a.id + '.' + k);
          if (k < a.n) this.later(a.nest === k ? 3 : 1, () => link(k + 1));
        };
        this.later(1, () => link(1));
        break;
      }
      case 'async': this.runAsync(a); break;
      case 'then':
        this.when(this.getDeferred(a.of), () => { this.log(a.id); this.exec(a.do); });
        break;
      case 'resolve': this.settle(this.getDeferred(a.of)); break;
      case 'fs': this.startFs(() => { this.log(a.id); this.exec(a.do); }); break;
      case 'pipe': {
        const p = { kind: 'pipe', bytes: 0, open: true,
                    onData: (n) => { this.log(a.id + '+' + n); this.exec(a.do); } };
        this.pipes.add(p);
        this.labels.set(a.id, p);
        break;
      }
      case 'write': {
        const p = this.labels.get(a.of);
        if (p && p.kind === 'pipe' && p.open) p.bytes += a.n || 1;
        break;
      }
      case 'close': {
        const p = this.labels.get(a.of);
        if (!p || p.kind !== 'pipe' || !p.open) break;
        p.open = false;
        this.pipes.delete(p);
        this.closing.unshift(() => { this.log(a.of + '.close'); this.exec(a.do); });
        break;
      }
      case 'throw': throw new Thrown(a.id);
      case 'try':
        try { this.exec(a.do); } catch (e) {
          if (!(e instanceof Thrown)) throw e;
          this.log('~' + e.id);
          this.exec(a.catch);
        }
        break;
      default: throw new Error('bad op ' + a.op);
    }
  }
}

function simulate(program, opt) {
  const s = new Sim(program, opt);
  const trace = s.run();
  return { trace, times: s.times, reads: s.reads, ms: s.clk - s.t0, iter: s.iter };
}

module.exports = { Sim, simulate, Reject, Thrown, FS_SETTLE };
