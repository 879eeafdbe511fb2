//! The only caller of user code, and the only place where the lanes are drained. (Node's timers drain them between the
//! callbacks of one list, through here.)

use std::sync::Arc;
use std::task::Waker;

use super::core::{Core, NO_TASK};
use super::queue::Entry;
use crate::executor::lane::{Drain, Microtask};
use crate::executor::spawn::{Held, Meta, Runnable};
use crate::kinds::Phase;
use crate::sys::task::{self, Outcome};

impl Core {
    /// Runs one callback of a phase, then drains the lanes (N9).
    ///
    /// A panic leaves through here: what is left of the lanes and of the phase stays where it is and goes on
    /// with the next run.
    pub(super) fn dispatch(&self, phase: Phase, callback: impl FnOnce()) {
        let _span = self.probe.callback(phase);
        self.run_callback(callback);
    }

    /// Runs one more callback inside a callback that is running, then drains the lanes.
    #[cfg(feature = "node")]
    pub(crate) fn dispatch_nested(&self, callback: impl FnOnce()) {
        self.run_callback(callback);
    }

    #[inline(always)]
    fn run_callback(&self, callback: impl FnOnce()) {
        if self.containment.is_on() {
            return self.dispatch_contained(callback);
        }
        callback();
        self.drain();
    }

    /// Wakes somebody as a callback of a phase, then drains the lanes. `put` gets the waker before anything is polled.
    ///
    /// A task that finds the lanes empty would be the next to come out of them, so it does not go in.
    #[inline(always)]
    pub(super) fn dispatch_wake(&self, phase: Phase, waker: Waker, put: impl FnOnce(Waker)) {
        let _span = self.probe.callback(phase);
        if self.can_skip_lanes() {
            let is_ours = |task: &Meta| Arc::ptr_eq(&task.shared, &self.shared);
            if let Some(task) = task::hold(&waker, is_ours) {
                put(waker);
                return self.run_before_lanes(|| self.run_held(task));
            }
        }
        self.run_callback(|| {
            waker.wake_by_ref();
            put(waker);
        });
    }

    /// Polls a task that was woken elsewhere as a callback of a phase, then drains the lanes.
    pub(super) fn dispatch_woken(&self, phase: Phase, runnable: Runnable) {
        let _span = self.probe.callback(phase);
        if self.can_skip_lanes() {
            self.run_before_lanes(|| self.run_task(runnable));
        } else {
            self.run_callback(|| self.lane.push_microtask(Microtask::Task(runnable)));
        }
    }

    /// Wakes somebody for whom the waker is done with then.
    #[inline(never)]
    pub(super) fn dispatch_waker(&self, phase: Phase, waker: Waker) {
        self.dispatch_wake(phase, waker, drop);
    }

    /// Runs a task in the place of the first microtask, as the lanes are empty, then what it has put into them.
    #[inline(always)]
    fn run_before_lanes(&self, run: impl FnOnce()) {
        run();
        if !self.lane.is_empty() {
            self.drain_rest();
        }
    }

    /// Whether a task that is put into the lanes now is the first to come out.
    #[inline]
    fn can_skip_lanes(&self) -> bool {
        self.lane.is_empty() && !self.containment.is_on()
    }

    pub(super) fn dispatch_entry(&self, phase: Phase, entry: Entry) {
        match entry {
            Entry::Wake(waker) => self.dispatch_waker(phase, waker),
            Entry::Call(call) | Entry::Unref(call) => self.dispatch(phase, || call.call()),
        }
    }

    /// What was put into the lanes outside of a callback: before the run, or beyond the budget of a drain. What a
    /// contained panic has left in them has a time of its own.
    pub(super) fn run_lanes(&self) {
        if !self.containment.is_interrupted() {
            self.contain(|| self.drain());
        }
    }

    /// What a contained panic has left in the lanes runs before the check phase at the latest (N66).
    #[inline]
    pub(super) fn run_interrupted_lanes(&self) {
        if self.containment.is_interrupted() {
            self.contain(|| self.drain());
        }
    }

    /// All ticks, then all microtasks, again while either grows (N1); less if there is a budget.
    ///
    /// A panic of a tick leaves through here, that of a microtask if there is no handler for it.
    #[inline(always)]
    pub(crate) fn drain(&self) {
        if !self.lane.is_empty() {
            self.drain_some();
        }
    }

    #[inline(never)]
    fn drain_some(&self) {
        if self.containment.is_on() {
            self.drain_contained();
        } else {
            self.drain_lanes(&mut Drain::default(), self.options.lane_budget);
        }
    }

    /// The drain after a task that did not go through the lanes.
    #[inline(never)]
    fn drain_rest(&self) {
        self.drain_lanes(&mut Drain::past_ticks(), self.options.lane_budget - 1);
    }

    #[inline]
    pub(super) fn drain_lanes(&self, drain: &mut Drain, mut budget: u64) {
        while budget > 0 {
            match self.lane.next(drain) {
                Some(Microtask::Task(runnable)) => self.run_task(runnable),
                Some(Microtask::Call(call)) => call.call(),
                None => return,
            }
            budget -= 1;
        }
        if !self.lane.is_empty() {
            self.budget_hits.set(self.budget_hits.get() + 1);
        }
    }

    /// Runs the microtasks, and those that they queue. Ticks stay where they are: the program is over.
    #[cfg(feature = "node")]
    pub(crate) fn drain_microtasks(&self) {
        while let Some(microtask) = self.lane.next_microtask() {
            self.contain(|| match microtask {
                Microtask::Task(runnable) => self.run_task(runnable),
                Microtask::Call(call) => call.call(),
            });
        }
    }

    #[inline(always)]
    fn run_task(&self, runnable: Runnable) {
        let slot = runnable.metadata().slot;
        let polled = || self.tasks.info(slot).filter(|_| !runnable.is_aborted());
        let span = self.probe.poll(polled);
        self.poll_task(slot, span, || runnable.run());
    }

    #[inline(always)]
    fn run_held(&self, task: Held) {
        let slot = task.metadata().slot;
        let polled = || self.tasks.info(slot).filter(|_| !task.is_aborted());
        let span = self.probe.poll(polled);
        self.poll_task(slot, span, || task.run());
    }

    #[inline(always)]
    fn poll_task<S>(&self, slot: u32, span: S, run: impl FnOnce() -> Outcome) {
        self.polled.set(slot);
        let outcome = run();
        drop(span);
        self.polled.set(NO_TASK);
        if outcome == Outcome::Closed {
            self.forget_task(slot);
        }
    }

    #[inline(never)]
    fn forget_task(&self, slot: u32) {
        self.tasks.remove(slot);
        // The task has taken the end of the program for a panic of its own.
        if self.containment.has_ended() {
            drop(self.lane.take_all());
        }
    }

    /// Polls a task that was just spawned, inside its spawner (N19).
    #[cfg(feature = "node")]
    pub(super) fn run_nested(&self, runnable: Runnable) {
        let spawner = self.polled.get();
        self.run_task(runnable);
        self.polled.set(spawner);
    }
}
