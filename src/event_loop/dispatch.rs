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
use crate::phase_order::Phase;
use crate::pool::Job;

impl Core {
    /// Runs one callback of a phase, then drains the lanes.
    ///
    /// A panic of user code propagates through here. The rest of the lanes and of the phase stays
    /// queued and runs with the next run of the loop.
    // Rule N9.
    pub(super) fn dispatch(&self, phase: Phase, callback: impl FnOnce()) {
        let _span = self.probe.callback(phase);
        self.run_callback(callback);
    }

    #[inline(always)]
    pub(super) fn run_callback(&self, callback: impl FnOnce()) {
        if self.panic_policy.is_contained() {
            return self.dispatch_contained(callback);
        }
        callback();
        self.drain();
    }

    /// Wakes a task or another waiter as a callback of a phase, then drains the lanes. `put_back`
    /// receives the waker before a task is polled, so that the poll finds it stored.
    #[inline(always)]
    pub(super) fn dispatch_wake(&self, phase: Phase, waker: Waker, put_back: impl FnOnce(Waker)) {
        let _span = self.probe.callback(phase);
        self.run_wake(|| {
            waker.wake_by_ref();
            put_back(waker);
        });
    }

    /// Wakes a waiter as a callback of a phase and consumes the waker, then drains the lanes.
    // Not inlined: it has many callers, and the inlined poll below it is large.
    #[inline(never)]
    pub(super) fn dispatch_waker(&self, phase: Phase, waker: Waker) {
        let _span = self.probe.callback(phase);
        self.run_wake(|| waker.wake());
    }

    /// Polls a task that another thread woke, as a callback of a phase, then drains the lanes.
    pub(super) fn dispatch_woken(&self, phase: Phase, runnable: Runnable) {
        let _span = self.probe.callback(phase);
        self.run_wake(|| self.executor.push_task(runnable));
    }

    /// Delivers the completion of a job as a callback of a phase, then drains the lanes.
    pub(super) fn dispatch_completion(&self, phase: Phase, job: Arc<dyn Job>) {
        let _span = self.probe.callback(phase);
        self.run_wake(|| job.arrive());
    }

    /// Runs a callback that usually wakes one task and does no more, then drains the lanes.
    #[inline(always)]
    fn run_wake(&self, wake: impl FnOnce()) {
        if self.panic_policy.is_contained() {
            return self.dispatch_contained(wake);
        }
        wake();
        // Usually one task is in the lanes; it is polled without the loops over the lanes.
        if !self.executor.drain_only_microtask() {
            self.drain();
        }
    }

    pub(super) fn dispatch_entry(&self, phase: Phase, entry: Entry) {
        match entry {
            Entry::Wake(waker) => self.dispatch_waker(phase, waker),
            Entry::Call(call) | Entry::Unref(call) => self.dispatch(phase, || call.call()),
        }
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
        self.clock.catch_up();
        if !self.panic_policy.is_interrupted() {
            self.contain(|| self.drain());
        }
    }

    /// Drains what a contained panic left in the lanes, before the check phase at the latest.
    // Rule N66.
    #[inline]
    pub(super) fn run_interrupted_lanes(&self) {
        if self.panic_policy.is_interrupted() {
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
        if self.panic_policy.is_contained() {
            self.drain_contained();
        } else if self.executor.is_draining() || !self.executor.drain_only_microtask() {
            self.executor.drain_lanes(&mut Drain::default());
        }
    }
}
