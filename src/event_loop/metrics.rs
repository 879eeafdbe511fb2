//! What a loop counts of itself, always: callbacks, kernel polls, idle time, busy periods,
//! lateness. [`Metrics`] is the copy that users get.
//!
//! ```text
//!   run ──────────────────────────────────────────────────────────────────────> end of the run
//!    │ busy period │ wait │ busy period │ kernel poll without a wait │ busy period │
//!    └── active ───┴ idle ┴────────────────────── active ──────────────────────────┘
//! ```
//!
//! A busy period ends where a wait begins, where a kernel poll that does not wait ends, or with the
//! run. What becomes due or ready during it is seen at its end at the earliest.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use super::api::metrics::{Metrics, Utilization};
use super::core::Core;
use crate::histogram::Histogram;
use crate::phase_order::Phase;

#[derive(Default)]
pub(super) struct Counters {
    callbacks: [Cell<u64>; 7],
    kernel_polls: Cell<u64>,
    events: Cell<u64>,
    events_waiting: Cell<u64>,
    remote_wakes: Cell<u64>,
    /// When the run began, while one is in progress.
    run_since: Cell<Option<u64>>,
    /// The time of the runs that have ended.
    ran: Cell<u64>,
    idle: Cell<u64>,
    /// When the busy period began.
    busy_since: Cell<u64>,
    busy_periods: RefCell<Histogram>,
    lateness: RefCell<Histogram>,
}

impl Counters {
    #[inline(always)]
    pub(super) fn count_callback(&self, phase: Phase) {
        add(&self.callbacks[phase as usize], 1);
    }

    #[inline(always)]
    pub(super) fn count_kernel_poll(&self) {
        add(&self.kernel_polls, 1);
    }

    /// Counts messages of other threads.
    pub(super) fn count_remote_wakes(&self, messages: usize) {
        add(&self.remote_wakes, messages as u64);
    }

    /// Counts the events of a kernel poll. `did_wait` is whether its time-out was not zero.
    #[inline(always)]
    pub(super) fn count_events(&self, events: usize, did_wait: bool) {
        add(&self.events, events as u64);
        if !did_wait {
            add(&self.events_waiting, events as u64);
        }
    }

    /// Notes that a timer was collected so long after its deadline, in nanoseconds.
    #[inline]
    pub(super) fn note_lateness(&self, late: u64) {
        self.lateness.borrow_mut().record_nanos(late);
    }

    pub(super) fn begin_run(&self, now: u64) {
        self.run_since.set(Some(now));
        self.busy_since.set(now);
    }

    /// Ends a run and its last busy period. Returns when the latter began.
    pub(super) fn end_run(&self, now: u64) -> u64 {
        if let Some(since) = self.run_since.take() {
            add(&self.ran, now.saturating_sub(since));
        }
        self.end_busy(now)
    }

    /// Ends the busy period, and begins another one. Returns when the former began.
    #[inline(always)]
    pub(super) fn end_busy(&self, now: u64) -> u64 {
        let since = self.busy_since.replace(now);
        let took = now.saturating_sub(since);
        self.busy_periods.borrow_mut().record_nanos(took);
        since
    }

    /// Notes a wait. Another busy period begins at its end.
    #[inline(always)]
    pub(super) fn end_wait(&self, start: u64, end: u64) {
        add(&self.idle, end.saturating_sub(start));
        self.busy_since.set(end);
    }

    /// Returns the time of all runs up to `now`, in nanoseconds.
    fn ran(&self, now: u64) -> u64 {
        let running = self.run_since.get();
        let running = running.map_or(0, |since| now.saturating_sub(since));
        self.ran.get() + running
    }
}

#[inline(always)]
fn add(counter: &Cell<u64>, amount: u64) {
    counter.set(counter.get().wrapping_add(amount));
}

impl Core {
    /// Returns how long the loop was active and idle in its runs.
    pub(crate) fn utilization(&self) -> Utilization {
        let idle = self.counters.idle.get();
        let ran = self.counters.ran(self.clock().read());
        Utilization {
            active: Duration::from_nanos(ran.saturating_sub(idle)),
            idle: Duration::from_nanos(idle),
        }
    }

    pub(super) fn metrics(&self) -> Metrics {
        let (counters, executor) = (&self.counters, &self.executor);
        let Utilization { active, idle } = self.utilization();
        Metrics {
            turns: self.turns.get(),
            kernel_polls: counters.kernel_polls.get(),
            events: counters.events.get(),
            events_waiting: counters.events_waiting.get(),
            callbacks: std::array::from_fn(|phase| counters.callbacks[phase].get()),
            polls: executor.polls(),
            closures: executor.closures(),
            remote_wakes: counters.remote_wakes.get(),
            spawned: executor.spawned(),
            tasks: executor.task_count(),
            budget_hits: executor.budget_hits(),
            idle,
            active,
            busy_periods: counters.busy_periods.borrow().clone(),
            lateness: counters.lateness.borrow().clone(),
        }
    }
}
