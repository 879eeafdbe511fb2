//! Runs callbacks and drains the lanes.
//!
//! Each callback of a phase runs through `dispatch` or one of its variants, which drain the lanes
//! after it. Only the functions here take entries out of the lanes and poll tasks. Two callers
//! order callback and drain themselves, by calling `drain`: contained panics (`uncaught.rs`), and
//! the layer for Node, whose shared timer runs many user timers in one callback of the loop and
//! drains between them.

use std::task::Waker;

use super::budget;
use super::core::{Core, NO_TASK};
use super::phases::queue::Entry;
use crate::executor::lane::Microtask;
use crate::executor::shared::Runnable;
use crate::turn::Phase;

/// The progress of a drain. A drain begins with the ticks.
#[derive(Default)]
pub(super) struct Drain {
    /// The ticks of this round are done: all microtasks run before the next tick.
    in_microtasks: bool,
}

impl Drain {
    /// Returns whether the last entry that was taken is a microtask.
    pub(super) fn is_in_microtasks(&self) -> bool {
        self.in_microtasks
    }
}

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
        self.run_wake(|| self.lane.push_task(runnable));
    }

    /// Runs a callback that only wakes a task, then drains the lanes.
    #[inline(always)]
    fn run_wake(&self, wake: impl FnOnce()) {
        if self.panic_policy.is_contained() {
            return self.dispatch_contained(wake);
        }
        wake();
        self.drain_woken();
    }

    /// Drains after a wake. Usually one task is in the lanes; it is polled without the loops over
    /// the lanes.
    // The hottest path of the loop: an event that wakes one task. Inlined, as are the functions it
    // calls, so that no call lies between the wake and the poll.
    #[inline(always)]
    fn drain_woken(&self) {
        match self.lane.pop_only_microtask() {
            Some(microtask) => {
                self.run_microtask(microtask);
                self.polled.set(NO_TASK);
                if !self.lane.is_empty() {
                    self.drain_rest();
                }
            }
            None => self.drain(),
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
        if !self.lane.is_empty() {
            self.run_filled_lanes();
        }
    }

    #[inline(never)]
    fn run_filled_lanes(&self) {
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

    /// Runs all ticks, then all microtasks, and repeats until both lanes are empty or the lane
    /// budget is used up.
    ///
    /// A panic of a tick propagates. A panic of a microtask propagates unless panics are contained.
    // Rule N1.
    #[inline(always)]
    pub(crate) fn drain(&self) {
        if !self.lane.is_empty() {
            self.drain_some();
        }
    }

    // Not inlined, so that the check for empty lanes, which is, stays small in its callers.
    #[inline(never)]
    fn drain_some(&self) {
        if self.panic_policy.is_contained() {
            self.drain_contained();
        } else {
            self.drain_lanes(&mut Drain::default(), self.options.lane_budget);
        }
    }

    /// Continues a drain whose first entry, a microtask, has run.
    #[inline(never)]
    fn drain_rest(&self) {
        let mut drain = Drain {
            in_microtasks: true,
        };
        self.drain_lanes(&mut drain, self.options.lane_budget - 1);
    }

    /// Runs the entries of the lanes until both are empty or `budget` entries have run.
    #[inline]
    pub(super) fn drain_lanes(&self, drain: &mut Drain, mut budget: u64) {
        while budget > 0 {
            if drain.in_microtasks {
                budget = self.run_microtasks(budget);
                if budget == 0 {
                    break;
                }
                drain.in_microtasks = false;
                // Ticks that the microtasks queued begin another round.
                if !self.lane.has_ticks() {
                    return;
                }
            }
            budget = self.run_ticks(budget);
            drain.in_microtasks = true;
        }
        if !self.lane.is_empty() {
            self.budget_hits.set(self.budget_hits.get() + 1);
        }
    }

    /// Runs ticks and returns the rest of the budget; zero only if it was used up.
    #[inline(always)]
    fn run_ticks(&self, mut budget: u64) -> u64 {
        let before = budget;
        while budget > 0 {
            let Some(tick) = self.lane.pop_tick() else {
                break;
            };
            tick.call();
            budget -= 1;
        }
        // Most drains have no tick to run; they skip the call.
        if budget != before {
            self.lane.shrink_ticks();
        }
        budget
    }

    /// Runs microtasks and returns the rest of the budget; zero only if it was used up.
    #[inline(always)]
    fn run_microtasks(&self, mut budget: u64) -> u64 {
        while let Some(microtask) = self.lane.pop_microtask() {
            self.run_microtask(microtask);
            budget -= 1;
            if budget == 0 {
                break;
            }
        }
        self.polled.set(NO_TASK);
        if budget > 0 {
            self.lane.shrink();
        }
        budget
    }

    #[inline(always)]
    pub(super) fn run_microtask(&self, microtask: Microtask<Runnable>) {
        match microtask {
            Microtask::Task(runnable) => self.run_task(runnable),
            Microtask::Call(call) => {
                self.polled.set(NO_TASK);
                call.call();
            }
        }
    }

    /// Polls a task, or drops it if it was aborted. The caller resets [`polled`](Core::polled),
    /// once for a batch of tasks.
    #[inline(always)]
    pub(super) fn run_task(&self, runnable: Runnable) {
        let slot = runnable.slot();
        self.polled.set(slot);
        // Each poll has a budget of its own; a task that used its up waits for the poll phase.
        budget::begin_poll();
        let info = || self.tasks.info(slot).filter(|_| !runnable.is_aborted());
        let _span = self.probe.poll(info);
        // Checked after the observer ran, since the observer may abort the task.
        if runnable.is_aborted() {
            drop(runnable);
        } else {
            runnable.run();
        }
    }
}
