//! The loop while something watches it: the cold twins of `dispatch` and of the pushes to the
//! lanes; see `probe/switch.rs`.

use super::core::Core;
use super::current;
use crate::frame;
use crate::phase_order::Phase;
use crate::probe::{Body, Mode, Origin};
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
        self.clear_frame();
        let _span = self.executor.probe.dispatch(phase);
        self.call_and_drain(phase, origin, callback);
        self.clear_frame();
    }

    /// Empties the frame: a callback begins without one, and leaves none behind.
    // Rule O4.
    pub(super) fn clear_frame(&self) {
        if self.executor.uses_contexts() {
            self.executor.begin_activity();
        }
    }

    /// Runs the body of a callback in the current frame, then drains the lanes.
    pub(crate) fn call_and_drain(&self, phase: Phase, origin: Origin, callback: &mut dyn FnMut()) {
        let mut body = || self.run_body(phase, origin, callback);
        if self.is_contained() {
            self.dispatch_contained(body);
        } else {
            body();
            self.drain();
        }
    }

    /// Runs one of several user callbacks of one callback of the loop, without a drain.
    #[cold]
    pub(crate) fn call_watched(&self, phase: Phase, origin: Origin, callback: &mut dyn FnMut()) {
        self.clear_frame();
        let _span = self.executor.probe.dispatch(phase);
        self.run_body(phase, origin, callback);
    }

    /// Runs the body of a callback as an activity.
    pub(super) fn run_body(&self, phase: Phase, origin: Origin, body: &mut dyn FnMut()) {
        self.executor.watching(Body::Callback(phase), origin, body);
    }
}

impl Core {
    /// Ends the last busy period of a run, which has no kernel poll after it.
    pub(super) fn end_busy_run(&self) {
        let (busy_since, now) = self.count_end_of_run();
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
    /// Lets a closure that is queued on this loop run in the current surroundings. The loop must be
    /// the current one: then the switch, which is tested anyway, shows whether contexts are in use.
    #[inline(always)]
    pub(crate) fn carried(&self, kind: &'static str, call: Call) -> Call {
        if !self.executor.probe.has(Mode::CALL) {
            debug_assert!(!frame::is_used(), "the current loop knows of contexts");
            return call;
        }
        frame::carry(kind, call)
    }

    /// Queues a tick on the current loop, to run in the current surroundings, as
    /// [`carried`](Self::carried) does: the switch is tested once.
    #[inline(always)]
    pub(crate) fn push_carried_tick(&self, kind: &'static str, tick: Call, site: Option<Site>) {
        if !self.executor.probe.has(Mode::CALL) {
            self.executor.push_tick(tick);
        } else {
            self.push_tick_watched(frame::carry(kind, tick), site);
        }
    }

    /// Queues a closure as a microtask on the current loop, to run in the current surroundings.
    #[inline(always)]
    pub(crate) fn push_carried_microtask(
        &self,
        kind: &'static str,
        call: Call,
        site: Option<Site>,
    ) {
        if !self.executor.probe.has(Mode::CALL) {
            self.executor.push_microtask(call);
        } else {
            self.push_microtask_watched(frame::carry(kind, call), site);
        }
    }

    /// Queues a tick. `site` is the line that queues it, if known.
    #[inline]
    pub(crate) fn push_tick(&self, tick: Call, site: Option<Site>) {
        if !self.executor.probe.has(Mode::CALL) {
            self.executor.push_tick(tick);
        } else {
            self.push_tick_watched(tick, site);
        }
    }

    /// Queues a closure as a microtask. `site` is the line that queues it, if known.
    #[inline]
    pub(crate) fn push_microtask(&self, microtask: Call, site: Option<Site>) {
        if !self.executor.probe.has(Mode::CALL) {
            self.executor.push_microtask(microtask);
        } else {
            self.push_microtask_watched(microtask, site);
        }
    }

    /// Queues a tick that runs as an activity. The wrapper is an allocation: an entry of a lane has
    /// no place for a line, so that a loop that nothing watches does not pay for one.
    #[cold]
    fn push_tick_watched(&self, tick: Call, site: Option<Site>) {
        let run = move || run_watched(Body::Tick, site, tick);
        self.executor.push_tick(Call::new(run));
    }

    /// Queues a microtask closure that runs as an activity.
    #[cold]
    fn push_microtask_watched(&self, microtask: Call, site: Option<Site>) {
        let run = move || run_watched(Body::Microtask, site, microtask);
        self.executor.push_microtask(Call::new(run));
    }
}

/// Runs a closure of a lane of the current loop as an activity.
fn run_watched(body: Body, site: Option<Site>, call: Call) {
    current::with(|core| match core {
        Some(core) => core.executor.run_call(body, site, call),
        None => call.call(),
    });
}
