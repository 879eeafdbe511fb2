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
// Marks: a wait is counted without a call (row `tcp_echo/1x64`); `publish` is `cold`, once in a
// run.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Executor;
use crate::clock::Clock;
use crate::histogram::Tally;
use crate::metrics::{Metrics, Utilization};
use crate::phase_order::Phase;
use crate::sys::clock::Counter;

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) turns: Cell<u64>,
    callbacks: [Cell<u64>; Phase::ALL.len()],
    pub(crate) kernel_polls: Cell<u64>,
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
    pub(crate) lateness: Tally,
}

impl Counters {
    #[inline]
    pub(crate) fn count_callback(&self, phase: Phase) {
        let count = &self.callbacks[phase as usize];
        count.set(count.get().wrapping_add(1));
    }

    /// Counts messages of other threads. Each is an event; of those that ended a wait, the kernel
    /// has reported one.
    pub(crate) fn count_messages(&self, messages: usize) {
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
    pub(crate) fn count_look(&self, now: u64, events: usize) -> u64 {
        self.did_wait.set(false);
        self.events_waiting
            .set(self.events_waiting.get() + events as u64);
        self.end_busy(now)
    }

    /// Counts the begin of a run.
    pub(crate) fn begin_run(&self, executor: &Executor) {
        let now = executor.clock.read();
        self.is_running.set(true);
        self.begun.set(now.wrapping_sub(self.begun.get()));
        self.busy_since.set(now);
        self.publish(executor);
    }

    /// Ends a run and its last busy period. Returns when the latter began, and the time.
    pub(crate) fn end_run(&self, executor: &Executor) -> (u64, u64) {
        let now = executor.clock.read();
        if self.is_running.replace(false) {
            self.begun.set(now.wrapping_sub(self.begun.get()));
        }
        self.publish(executor);
        (self.end_busy(now), now)
    }

    /// Publishes the active and the idle time to other threads, and whether they pass.
    #[cold]
    pub(crate) fn publish(&self, executor: &Executor) {
        let (clock, pace) = (&executor.clock, &executor.shared.pace);
        let (active, idle) = (self.active(clock.read()), self.idle.get());
        if clock.is_paused() || !self.is_running.get() {
            pace.stop(active, idle);
        } else {
            pace.begin_run(active, idle);
        }
    }

    /// Ends the busy period, and begins another one. Returns when the former began.
    #[inline]
    pub(crate) fn end_busy(&self, now: u64) -> u64 {
        let since = self.busy_since.replace(now);
        // The clock never goes back.
        self.busy_periods.record(now.wrapping_sub(since));
        since
    }

    /// Ends the busy period: the loop begins to wait at `start`. Returns when the former began.
    /// There is no pace while the clock is paused.
    #[inline]
    pub(crate) fn begin_wait(&self, start: u64, pace: Option<&Pace>) -> u64 {
        if let Some(pace) = pace {
            let active = start.wrapping_sub(self.begun.get()) - self.idle.get();
            pace.still
                .store(active << STATE_BITS | WAITING, Ordering::Relaxed);
        }
        self.end_busy(start)
    }

    /// Ends a wait with its events, and begins another busy period.
    #[inline(always)]
    pub(crate) fn end_wait(&self, start: u64, end: u64, events: usize, pace: Option<&Pace>) {
        self.did_wait.set(true);
        self.events_awaited
            .set(self.events_awaited.get() + events as u64);
        // The clock never goes back.
        let idle = self.idle.get() + (end - start);
        self.idle.set(idle);
        self.busy_since.set(end);
        if let Some(pace) = pace {
            pace.still
                .store(idle << STATE_BITS | BUSY, Ordering::Relaxed);
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

    /// Returns how long the loop was active and idle in its runs.
    pub(crate) fn utilization(&self, clock: &Clock) -> Utilization {
        Utilization {
            active: Duration::from_nanos(self.active(clock.read())),
            idle: Duration::from_nanos(self.idle.get()),
        }
    }

    #[inline]
    pub(crate) fn metrics(&self, executor: &Executor) -> Metrics {
        let Utilization { active, idle } = self.utilization(&executor.clock);
        Metrics {
            turns: self.turns.get(),
            kernel_polls: self.kernel_polls.get(),
            events: self.events_awaited.get() + self.events_waiting.get(),
            events_waiting: self.events_waiting.get(),
            callbacks: std::array::from_fn(|phase| self.callbacks[phase].get()),
            polls: executor.polls(),
            closures: executor.closures(),
            remote_wakes: self.remote_wakes.get(),
            spawned: executor.tasks.spawned(),
            tasks: executor.tasks.len(),
            budget_hits: executor.budget_hits(),
            idle,
            active,
            busy_periods: self.busy_periods.histogram(),
            lateness: self.lateness.histogram(),
        }
    }
}

/// The loop is busy: `still` is the idle time, and `other` when the loop would have begun if it had
/// run without a pause.
const BUSY: u64 = 0;
/// The loop waits: `still` is the active time, and `other` is as above.
const WAITING: u64 = 1;
/// The loop does not run, or its clock does not: `still` is the active time, `other` the idle time.
const STOPPED: u64 = 2;
const STATE_BITS: u32 = 2;

/// How long a loop was active and how long idle, readable by any thread, also while the loop is
/// stuck.
///
/// While a loop is busy, its idle time stands still and its active time passes; while it waits, the
/// other way round. So one of the two sums and the beginning of the run give both at any moment.
/// The loop stores one word when it begins to wait and one when it is back.
pub(crate) struct Pace {
    counter: Counter,
    /// The sum that stands still, in nanoseconds, above the state.
    still: AtomicU64,
    other: AtomicU64,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self {
            counter: Counter::new(),
            still: AtomicU64::new(STOPPED),
            other: AtomicU64::new(0),
        }
    }

    /// A run begins, or goes on: the loop was active and idle so long.
    pub(crate) fn begin_run(&self, active: u64, idle: u64) {
        let begun = self.counter.nanoseconds().wrapping_sub(active + idle);
        self.set(idle << STATE_BITS | BUSY, begun);
    }

    pub(crate) fn stop(&self, active: u64, idle: u64) {
        self.set(active << STATE_BITS | STOPPED, idle);
    }

    fn set(&self, still: u64, other: u64) {
        // No reader takes the two words of different moments: it reads `still` again.
        self.still.store(u64::MAX, Ordering::SeqCst);
        self.other.store(other, Ordering::SeqCst);
        self.still.store(still, Ordering::SeqCst);
    }

    /// Returns the active and the idle time at this moment, in nanoseconds.
    pub(crate) fn read(&self) -> (u64, u64) {
        loop {
            let still = self.still.load(Ordering::SeqCst);
            let other = self.other.load(Ordering::SeqCst);
            let now = self.counter.nanoseconds();
            if still == u64::MAX || still != self.still.load(Ordering::SeqCst) {
                std::hint::spin_loop();
                continue;
            }
            let sum = still >> STATE_BITS;
            let passing = now.wrapping_sub(other).saturating_sub(sum);
            return match still & ((1 << STATE_BITS) - 1) {
                BUSY => (passing, sum),
                WAITING => (sum, passing),
                _ => (sum, other),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BUSY, Pace, STATE_BITS, WAITING};
    use std::sync::atomic::Ordering;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn one_sum_passes_and_the_other_stands_still() {
        let pace = Pace::new();
        assert_eq!(pace.read(), (0, 0));
        pace.begin_run(5, 7);
        let (active, idle) = pace.read();
        assert!(active >= 5 && idle == 7);
        thread::sleep(Duration::from_millis(1));
        assert!(
            pace.read().0 >= active + 1_000_000,
            "the active time passes"
        );
        pace.still
            .store(9 << STATE_BITS | WAITING, Ordering::Relaxed);
        let (active, idle) = pace.read();
        assert!(active == 9 && idle >= 7, "{active} {idle}");
        pace.still.store(11 << STATE_BITS | BUSY, Ordering::Relaxed);
        assert_eq!(pace.read().1, 11);
        pace.stop(13, 11);
        assert_eq!((pace.read(), pace.read()), ((13, 11), (13, 11)));
    }

    #[test]
    fn a_reader_never_takes_two_words_of_different_moments() {
        let pace = Pace::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..50_000 {
                    pace.stop(i, i * 2);
                }
            });
            for _ in 0..50_000 {
                let (active, idle) = pace.read();
                assert_eq!(idle, active * 2);
            }
        });
    }
}
