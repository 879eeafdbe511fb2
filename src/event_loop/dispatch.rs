//! Runs callbacks and drains the lanes.
//!
//! Each callback of a phase runs through `dispatch` or one of its variants, which drain the lanes
//! after it. The executor takes the entries out of the lanes and polls the tasks
//! (`executor.rs`); only the functions here ask it to. Two callers order callback and drain
//! themselves, by calling `drain`: contained panics (`uncaught.rs`), and the layer for Node, whose
//! shared timer runs many user timers in one callback of the loop and drains between them.

use std::sync::Arc;
use std::task::Waker;

use super::core::Core;
use super::phases::queue::Entry;
use crate::executor::Drain;
use crate::executor::shared::Runnable;
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::pool::Job;
use crate::probe::{Activity, Origin};
use crate::site::Site;

impl Core {
    /// Runs one callback of a phase, then drains the lanes. `origin` tells where the callback comes
    /// from; only a watched loop asks.
    ///
    /// A panic of user code propagates through here. The rest of the lanes and of the phase stays
    /// queued and runs with the next run of the loop.
    // Rule N9.
    pub(super) fn dispatch(
        &self,
        phase: Phase,
        origin: impl FnOnce() -> Origin,
        callback: impl FnOnce(),
    ) {
        if !self.modes().is_plain() {
            return self.dispatch_cold(phase, origin, callback);
        }
        self.counters.count_callback(phase);
        callback();
        self.drain();
    }

    /// Wakes a task or another waiter as a callback of a phase, then drains the lanes. `put_back`
    /// receives the waker before a task is polled, so that the poll finds it stored.
    #[inline(always)]
    pub(super) fn dispatch_wake(
        &self,
        phase: Phase,
        origin: impl FnOnce() -> Origin,
        waker: Waker,
        put_back: impl FnOnce(Waker),
    ) {
        self.run_wake(phase, origin, || {
            waker.wake_by_ref();
            put_back(waker);
        });
    }

    /// Does what [`dispatch_wake`](Self::dispatch_wake) does, for callers that are rare: no copy of
    /// the poll is inlined into them.
    #[inline(never)]
    pub(super) fn dispatch_wake_rarely(
        &self,
        phase: Phase,
        origin: &dyn Fn() -> Origin,
        waker: Waker,
        put_back: &dyn Fn(Waker),
    ) {
        self.dispatch_wake(phase, origin, waker, put_back);
    }

    /// Wakes a waiter as a callback of a phase and consumes the waker, then drains the lanes.
    #[inline(always)]
    pub(super) fn dispatch_waker(
        &self,
        phase: Phase,
        origin: impl FnOnce() -> Origin,
        waker: Waker,
    ) {
        if !self.modes().is_plain() {
            return self.dispatch_cold(phase, origin, || waker.wake());
        }
        self.counters.count_callback(phase);
        self.wake_and_drain(waker);
    }

    // Not inlined: it has many callers, and the inlined poll below it is large.
    #[inline(never)]
    fn wake_and_drain(&self, waker: Waker) {
        waker.wake();
        self.drain_woken();
    }

    /// Polls a task that another thread woke, as a callback of a phase, then drains the lanes.
    pub(super) fn dispatch_woken(&self, phase: Phase, runnable: Runnable) {
        self.run_wake(phase, Origin::default, || self.executor.push_task(runnable));
    }

    /// Delivers the completion of a job as a callback of a phase, then drains the lanes.
    pub(super) fn dispatch_completion(&self, phase: Phase, job: Arc<dyn Job>) {
        if !self.modes().is_plain() {
            let origin = Origin::new(Keeper::Work, job.site());
            return self.dispatch_watched(phase, origin, &mut once(|| job.arrive()));
        }
        self.counters.count_callback(phase);
        job.arrive();
        self.drain_woken();
    }

    /// Runs a callback that usually wakes one task and does no more, then drains the lanes.
    #[inline(always)]
    fn run_wake(&self, phase: Phase, origin: impl FnOnce() -> Origin, wake: impl FnOnce()) {
        if !self.modes().is_plain() {
            return self.dispatch_cold(phase, origin, wake);
        }
        self.counters.count_callback(phase);
        wake();
        self.drain_woken();
    }

    /// Drains the lanes. Usually one task is in them; it is polled without the loops over the
    /// lanes.
    #[inline(always)]
    fn drain_woken(&self) {
        if !self.executor.drain_only_microtask() {
            self.drain();
        }
    }

    /// Runs an entry that was taken out of a queue. `site` is the line that queued it, if known.
    // Inlined, so that the entry is not copied on the way.
    #[inline(always)]
    pub(super) fn dispatch_entry(&self, phase: Phase, entry: Entry, site: Option<Site>) {
        if !self.modes().is_plain() {
            return self.dispatch_entry_watched(phase, entry, site);
        }
        self.counters.count_callback(phase);
        match entry.into_call() {
            Ok(call) => {
                call.call();
                self.drain();
            }
            Err(waker) => self.wake_and_drain(waker),
        }
    }

    /// Goes to the twin, unless a recorder is all that watches. It is a function of its own, to
    /// keep the closures of the plain path in registers.
    #[cold]
    #[inline(never)]
    pub(super) fn dispatch_cold(
        &self,
        phase: Phase,
        origin: impl FnOnce() -> Origin,
        callback: impl FnOnce(),
    ) {
        let origin = origin();
        let Some(recording) = self.executor.recording(Activity::Callback(phase), origin) else {
            return self.dispatch_watched(phase, origin, &mut once(callback));
        };
        // The callback is called here, not by reference: that would cost half as much as a record.
        self.counters.count_callback(phase);
        callback();
        recording.finish();
        self.drain();
    }

    /// Drains what was queued outside of a callback: before the run, or beyond the budget of a
    /// drain. What a contained panic left in the lanes waits for
    /// [`run_interrupted_lanes`](Self::run_interrupted_lanes).
    #[inline(always)]
    pub(super) fn run_lanes(&self) {
        if !self.executor.are_lanes_idle() {
            self.run_filled_lanes();
        }
    }

    #[inline(never)]
    fn run_filled_lanes(&self) {
        self.clock().catch_up();
        if !self.is_interrupted() {
            self.contain(|| self.drain());
        }
    }

    /// Drains what a contained panic left in the lanes, before the check phase at the latest.
    // Rule N66.
    #[inline]
    pub(super) fn run_interrupted_lanes(&self) {
        if self.is_interrupted() {
            self.contain(|| self.drain());
        }
    }

    /// Drains the lanes: all ticks, then all microtasks, until both are empty or the lane budget is
    /// used up.
    ///
    /// A panic of a tick propagates. A panic of a microtask propagates unless panics are contained.
    // Rule N1.
    #[inline(always)]
    pub(super) fn drain(&self) {
        if !self.executor.are_lanes_idle() {
            self.drain_some();
        }
    }

    // Not inlined, so that the check for empty lanes, which is, stays small in its callers.
    #[inline(never)]
    fn drain_some(&self) {
        if self.is_contained() {
            self.drain_contained();
        } else if self.executor.is_draining() || !self.executor.drain_only_microtask() {
            self.executor.drain_lanes(&mut Drain::default());
        }
    }
}

/// Turns a closure into one that the twins can call: they take it by reference, so that the program
/// has one copy of each. A second call does nothing.
pub(super) fn once(call: impl FnOnce()) -> impl FnMut() {
    let mut call = Some(call);
    move || {
        if let Some(call) = call.take() {
            call();
        }
    }
}
