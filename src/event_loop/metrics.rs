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

use std::cell::Cell;
use std::time::Duration;

use super::core::Core;
use crate::executor::pace::Pace;
use crate::histogram::Tally;
use crate::metrics::{Metrics, Utilization};
use crate::phase_order::Phase;

#[derive(Default)]
pub(crate) struct Counters {
    callbacks: [Cell<u64>; 7],
    pub(super) kernel_polls: Cell<u64>,
    /// The events that ended a wait.
    events_awaited: Cell<u64>,
    /// The events that were there when the kernel was asked without a wait.
    events_waiting: Cell<u64>,
    remote_wakes: Cell<u64>,
    /// Whether the last kernel poll was a wait.
    did_wait: Cell<bool>,
    is_running: Cell<bool>,
    /// While a run is in progress, the time when the loop would have begun if it had run without a
    /// pause. Otherwise, the time of all runs.
    begun: Cell<u64>,
    idle: Cell<u64>,
    /// When the busy period began.
    busy_since: Cell<u64>,
    busy_periods: Tally,
    /// How long after their deadlines timers were collected.
    pub(super) lateness: Tally,
}

impl Counters {
    #[inline]
    pub(crate) fn count_callback(&self, phase: Phase) {
        let count = &self.callbacks[phase as usize];
        count.set(count.get().wrapping_add(1));
    }

    /// Counts messages of other threads. Each is an event; of those that ended a wait, the kernel
    /// has reported one.
    pub(super) fn count_messages(&self, messages: usize) {
        self.remote_wakes
            .set(self.remote_wakes.get() + messages as u64);
        let (events, reported) = match self.did_wait.get() {
            true => (&self.events_awaited, 1),
            false => (&self.events_waiting, 0),
        };
        events.set(events.get() + messages.saturating_sub(reported) as u64);
    }

    /// Counts a kernel poll that does not wait, and ends the busy period. Returns when that began.
    #[inline]
    pub(super) fn count_look(&self, now: u64, events: usize) -> u64 {
        self.did_wait.set(false);
        self.events_waiting
            .set(self.events_waiting.get() + events as u64);
        self.end_busy(now)
    }

    fn begin_run(&self, now: u64) {
        self.is_running.set(true);
        self.begun.set(now.wrapping_sub(self.begun.get()));
        self.busy_since.set(now);
    }

    fn end_run(&self, now: u64) {
        if self.is_running.replace(false) {
            self.begun.set(now.wrapping_sub(self.begun.get()));
        }
    }

    /// Ends the busy period, and begins another one. Returns when the former began.
    #[inline]
    pub(super) fn end_busy(&self, now: u64) -> u64 {
        let since = self.busy_since.replace(now);
        // The clock never goes back.
        self.busy_periods.record(now.wrapping_sub(since));
        since
    }

    /// Ends the busy period: the loop begins to wait at `start`. Returns when the former began.
    /// There is no pace while the clock is paused.
    #[inline]
    pub(super) fn begin_wait(&self, start: u64, pace: Option<&Pace>) -> u64 {
        if let Some(pace) = pace {
            pace.begin_wait(start.wrapping_sub(self.begun.get()) - self.idle.get());
        }
        self.end_busy(start)
    }

    /// Ends a wait with its events, and begins another busy period.
    #[inline(always)]
    pub(super) fn end_wait(&self, start: u64, end: u64, events: usize, pace: Option<&Pace>) {
        self.did_wait.set(true);
        self.events_awaited
            .set(self.events_awaited.get() + events as u64);
        // The clock never goes back.
        let idle = self.idle.get() + (end - start);
        self.idle.set(idle);
        self.busy_since.set(end);
        if let Some(pace) = pace {
            pace.end_wait(idle);
        }
    }

    /// Returns the time of all runs up to `now` that was not idle, in nanoseconds.
    #[inline(always)]
    fn active(&self, now: u64) -> u64 {
        let ran = if self.is_running.get() {
            now.wrapping_sub(self.begun.get())
        } else {
            self.begun.get()
        };
        ran - self.idle.get()
    }
}

/// Runs. Other threads read the pace of each.
impl Core {
    pub(super) fn count_run(&self) {
        self.counters.begin_run(self.executor.clock.read());
        self.publish_pace();
    }

    /// Ends a run and its last busy period. Returns when the latter began, and the time.
    pub(super) fn count_end_of_run(&self) -> (u64, u64) {
        let (counters, now) = (&self.counters, self.executor.clock.read());
        counters.end_run(now);
        self.publish_pace();
        (counters.end_busy(now), now)
    }

    /// Publishes both times to other threads, and whether they pass.
    #[cold]
    pub(crate) fn publish_pace(&self) {
        let (counters, pace) = (&self.counters, &self.executor.shared.pace);
        let active = counters.active(self.executor.clock.read());
        let idle = counters.idle.get();
        if self.executor.clock.is_paused() || !counters.is_running.get() {
            pace.stop(active, idle);
        } else {
            pace.begin_run(active, idle);
        }
    }
}

impl Core {
    /// Returns how long the loop was active and idle in its runs.
    pub(crate) fn utilization(&self) -> Utilization {
        let (counters, now) = (&self.counters, self.executor.clock.read());
        Utilization {
            active: Duration::from_nanos(counters.active(now)),
            idle: Duration::from_nanos(counters.idle.get()),
        }
    }

    #[inline]
    pub(crate) fn metrics(&self) -> Metrics {
        let (counters, executor) = (&self.counters, &self.executor);
        let Utilization { active, idle } = self.utilization();
        Metrics {
            turns: self.turns.get(),
            kernel_polls: counters.kernel_polls.get(),
            events: counters.events_awaited.get() + counters.events_waiting.get(),
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
            busy_periods: counters.busy_periods.histogram(),
            lateness: counters.lateness.histogram(),
        }
    }
}
