//! The only caller of user code, and the only place where the lanes are drained. (Node's timers drain them between the
//! callbacks of one list, through here.)

use std::task::Waker;

use super::budget;
use super::core::{Core, NO_TASK};
use super::queue::Entry;
use crate::executor::lane::Microtask;
use crate::executor::spawn::Runnable;
use crate::kinds::Phase;

/// How far a drain has come. It begins with the ticks.
#[derive(Default)]
pub(super) struct Drain {
    /// Past the ticks of this round: the microtasks go on to their end first.
    in_microtasks: bool,
}

impl Drain {
    /// Whether what was taken last was a microtask.
    pub(super) fn is_in_microtasks(&self) -> bool {
        self.in_microtasks
    }
}

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

    /// Wakes a task or another waiter as a callback of a phase, then drains the lanes. `put` gets the waker before anything
    /// is polled.
    #[inline(always)]
    pub(super) fn dispatch_wake(&self, phase: Phase, waker: Waker, put: impl FnOnce(Waker)) {
        let _span = self.probe.callback(phase);
        self.run_wake(|| {
            waker.wake_by_ref();
            put(waker);
        });
    }

    /// Wakes a waiter that is done with its waker then.
    #[inline(never)]
    pub(super) fn dispatch_waker(&self, phase: Phase, waker: Waker) {
        let _span = self.probe.callback(phase);
        self.run_wake(|| waker.wake());
    }

    /// Polls a task that was woken elsewhere as a callback of a phase, then drains the lanes.
    pub(super) fn dispatch_woken(&self, phase: Phase, runnable: Runnable) {
        let _span = self.probe.callback(phase);
        self.run_wake(|| self.lane.push_task(runnable));
    }

    /// A callback that does not much but wake a task, then the drain.
    #[inline(always)]
    fn run_wake(&self, wake: impl FnOnce()) {
        if self.containment.is_on() {
            return self.dispatch_contained(wake);
        }
        wake();
        self.drain_woken();
    }

    /// The drain after a wake. Mostly it has to poll one task, which then needs none of the loops over the lanes.
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

    /// The rest of a drain whose first entry, a microtask, was run already.
    #[inline(never)]
    fn drain_rest(&self) {
        let mut drain = Drain {
            in_microtasks: true,
        };
        self.drain_lanes(&mut drain, self.options.lane_budget - 1);
    }

    /// Runs what is in the lanes, as far as the budget goes. Outside of this and of [`run_task`](Self::run_task) no task is
    /// [polled](Core::polled).
    #[inline]
    pub(super) fn drain_lanes(&self, drain: &mut Drain, mut budget: u64) {
        while budget > 0 {
            if drain.in_microtasks {
                budget = self.run_microtasks(budget);
                if budget == 0 {
                    break;
                }
                drain.in_microtasks = false;
                // Ticks that the microtasks have queued begin another round.
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

    /// Returns what is left of the budget; zero only if it was used up.
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
        // Most drains have no tick to run.
        if budget != before {
            self.lane.shrink_ticks();
        }
        budget
    }

    /// As [`run_ticks`](Self::run_ticks).
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

    /// Runs the microtasks, and those that they queue. Ticks stay where they are: the program is over.
    #[cfg(feature = "node")]
    pub(crate) fn drain_microtasks(&self) {
        while let Some(microtask) = self.lane.pop_microtask() {
            self.contain(|| self.run_microtask(microtask));
        }
        self.polled.set(NO_TASK);
    }

    #[inline(always)]
    fn run_microtask(&self, microtask: Microtask<Runnable>) {
        match microtask {
            Microtask::Task(runnable) => self.run_task(runnable),
            Microtask::Call(call) => {
                self.polled.set(NO_TASK);
                call.call();
            }
        }
    }

    /// Polls a task, or drops it if it was aborted. The caller sets [`polled`](Core::polled) back, once for many.
    #[inline(always)]
    fn run_task(&self, runnable: Runnable) {
        let slot = runnable.slot();
        self.polled.set(slot);
        budget::begin_poll();
        let info = || self.tasks.info(slot).filter(|_| !runnable.is_aborted());
        let span = self.probe.poll(info);
        // Asked after the observer, which may abort the task.
        if runnable.is_aborted() {
            drop(runnable);
        } else {
            runnable.run();
        }
        drop(span);
    }

    /// Polls a task that was just spawned, inside its spawner (N19).
    #[cfg(feature = "node")]
    pub(super) fn run_nested(&self, runnable: Runnable) {
        let (spawner, left) = (self.polled.get(), budget::left());
        self.spawners.borrow_mut().push(spawner);
        self.run_task(runnable);
        self.spawners.borrow_mut().pop();
        self.polled.set(spawner);
        budget::restore(left);
    }
}
