//! The loop while something watches it: the cold twins of `dispatch` and of the pushes to the
//! lanes; see `probe/switch.rs`.
// Marks: `cold` are the twins, which a loop without observers never calls. The two that queue a
// closure are each tick (rows `next_tick`, `microtasks/1000`).

use super::core::Core;
use super::current;
use crate::executor::lanes::Lane;
use crate::frame;
use crate::phase_order::Phase;
use crate::probe::{Body, Mode, Origin, SitedCall};
use crate::raw::call::Call;
use crate::site::Site;

impl Core {
    /// Runs one callback of a phase, then drains the lanes: [`dispatch`](Self::dispatch) while
    /// something watches, or a handler receives panics.
    #[cold]
    pub(super) fn dispatch_watched(
        &self,
        phase: Phase,
        origin: Origin,
        callback: &mut dyn FnMut(),
    ) {
        self.counters.count_callback(phase);
        self.executor.begin_callback();
        let _span = self.executor.probe.dispatch(phase);
        self.call_and_drain(phase, origin, callback);
        self.executor.begin_callback();
    }

    /// Runs the body of a callback in the current frame, then drains the lanes.
    pub(crate) fn call_and_drain(&self, phase: Phase, origin: Origin, callback: &mut dyn FnMut()) {
        let body = || {
            self.executor
                .watching(Body::Callback(phase), origin, callback)
        };
        if self.executor.probe.has(Mode::CONTAINED) {
            self.dispatch_contained(body);
        } else {
            body();
            self.drain();
        }
    }

    /// Runs one of several user callbacks of one callback of the loop, without a drain.
    #[cold]
    pub(crate) fn call_watched(&self, phase: Phase, origin: Origin, callback: &mut dyn FnMut()) {
        self.executor.begin_callback();
        let _span = self.executor.probe.dispatch(phase);
        self.executor
            .watching(Body::Callback(phase), origin, callback);
    }
}

impl Core {
    /// Ends the last busy period of a run, which has no kernel poll after it.
    pub(super) fn end_busy_run(&self) {
        let (busy_since, now) = self.counters.end_run(&self.executor);
        if self.executor.probe.has(Mode::WAIT) {
            self.end_busy_watched(busy_since, now);
        }
    }

    /// Notifies the observers that a busy period has ended.
    #[cold]
    pub(super) fn end_busy_watched(&self, start: u64, end: u64) {
        let overdue = |latest| {
            let mut found = Vec::new();
            self.phases.each_timer(|deadline, _, _| {
                if deadline <= latest {
                    found.push(deadline);
                }
            });
            found
        };
        self.executor
            .probe
            .end_busy((start, end), &self.executor.clock, &overdue);
    }
}

/// The lanes.
impl Core {
    /// Lets a closure that is queued on this loop run in the current context. The loop must be
    /// the current one: then the switch, which is tested anyway, shows whether contexts are in use.
    #[inline(always)]
    pub(crate) fn carried(&self, kind: &'static str, call: Call) -> Call {
        if !self.executor.probe.has(Mode::CALL) {
            debug_assert!(!frame::is_used(), "the current loop knows of contexts");
            return call;
        }
        frame::carry(kind, call)
    }

    /// Queues a closure in a lane of the current loop, to run in the current context, as
    /// [`carried`](Self::carried) does: the switch is tested once.
    #[inline(always)]
    pub(crate) fn push_carried(
        &self,
        lane: Lane,
        kind: &'static str,
        call: Call,
        site: Option<Site>,
    ) {
        if self.executor.probe.has(Mode::CALL) {
            self.push_watched(lane, Some(kind), call, site);
        } else {
            self.executor.push_call(lane, call);
        }
    }

    /// Queues a closure in a lane. `site` is the line that queues it, if known. A loop that is
    /// dropped drops it at once.
    #[inline]
    pub(crate) fn push_call(&self, lane: Lane, call: Call, site: Option<Site>) {
        if self.executor.probe.has(Mode::CALL) {
            self.push_watched(lane, None, call, site);
        } else {
            self.executor.push_call(lane, call);
        }
    }

    /// Queues a closure that runs as an activity, with its line.
    #[cold]
    fn push_watched(&self, lane: Lane, kind: Option<&'static str>, call: Call, site: Option<Site>) {
        // What a drop queues while the loop is dropped would stay: it may own a handle to the loop.
        if self.executor.is_closed() {
            return;
        }
        let call = match kind {
            Some(kind) => frame::carry(kind, call),
            None => call,
        };
        let call = self.executor.probe.sited.put(call, site);
        // One word each, which is no allocation.
        let call = match lane {
            Lane::Ticks => Call::new(move || run_watched(Body::Tick, call)),
            Lane::Microtasks => Call::new(move || run_watched(Body::Microtask, call)),
        };
        self.executor.push_call(lane, call);
    }
}

/// Runs a closure of a lane of the current loop as an activity.
fn run_watched(body: Body, call: Box<SitedCall>) {
    current::with(|core| match core {
        Some(core) => core.executor.run_call(body, call),
        None => call.call(),
    });
}
