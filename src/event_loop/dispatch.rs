//! The only caller of user code, and the only place where the lanes are drained.

use super::core::{Core, NO_TASK};
use super::queue::Entry;
use crate::executor::lane::{Drain, Microtask};
use crate::executor::spawn::Runnable;
use crate::kinds::Phase;
use crate::sys::task::Outcome;

impl Core {
    /// Runs one callback of a phase, then drains the lanes (N9).
    ///
    /// A panic leaves through here: what is left of the lanes and of the phase stays where it is and goes on
    /// with the next run.
    pub(super) fn dispatch(&self, phase: Phase, callback: impl FnOnce()) {
        let _span = self.probe.callback(phase);
        callback();
        self.drain();
    }

    pub(super) fn dispatch_entry(&self, phase: Phase, entry: Entry) {
        match entry {
            Entry::Wake(waker) => self.dispatch(phase, || waker.wake()),
            Entry::Call(call) => self.dispatch(phase, call),
        }
    }

    /// What was put into the lanes outside of a callback: before the run, or beyond the budget of a drain.
    pub(super) fn run_lanes(&self) {
        self.drain();
    }

    /// All ticks, then all microtasks, again while either grows (N1); less if there is a budget.
    #[inline]
    fn drain(&self) {
        if !self.lane.is_empty() {
            self.drain_lanes();
        }
    }

    fn drain_lanes(&self) {
        let mut budget = self.options.lane_budget;
        let mut drain = Drain::default();
        while let Some(job) = self.lane.next(&mut drain) {
            match job {
                Microtask::Task(runnable) => self.run_task(runnable),
                Microtask::Root => self.root.call(),
                Microtask::Call(call) => call(),
            }
            budget -= 1;
            if budget == 0 {
                self.budget_hits.set(self.budget_hits.get() + 1);
                break;
            }
        }
    }

    fn run_task(&self, runnable: Runnable) {
        let slot = runnable.metadata().slot;
        let outcome = {
            let polled = || self.tasks.info(slot).filter(|_| !runnable.is_aborted());
            let _span = self.probe.poll(polled);
            self.polled.set(slot);
            runnable.run()
        };
        self.polled.set(NO_TASK);
        if outcome == Outcome::Closed {
            self.tasks.remove(slot);
        }
    }
}
