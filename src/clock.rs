//! The loop's time: a cached time, the real clock behind it, and a clock that tests advance by
//! hand.
//!
//! Times are nanoseconds since the loop was created. 64 bits last 584 years; `u64::MAX` means
//! "never", and every sum saturates there.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::sys;
use crate::sys::clock::Counter;

/// A deadline that is never reached.
pub(crate) const NEVER: u64 = u64::MAX;

pub(crate) struct Clock {
    /// When the loop was created. It is read before the counter, so that an [`Instant`] maps to a
    /// time that is a few nanoseconds late and never early.
    start: Instant,
    counter: Counter,
    /// The value of the counter at time zero. Differences wrap, since the clock may be ahead of the
    /// counter after a pause.
    zero: Cell<u64>,
    /// The value of `now` until the next `update`.
    // Rule R44.
    cached: Cell<u64>,
    /// Whether an update was left out because no code was about to read the cached time.
    is_behind: Cell<bool>,
    /// The time while the clock is paused.
    paused: Cell<Option<u64>>,
    /// Whether the paused clock jumps to the next deadline when the loop has nothing to do.
    #[cfg(any(test, feature = "test-util"))]
    auto_advance: Cell<bool>,
}

impl Clock {
    /// Creates a clock. `start` is that of another loop on the same time, and now by default.
    pub(crate) fn new(paused: bool, start: Option<Instant>) -> Self {
        let counter = Counter::new();
        Self {
            start: start.unwrap_or_else(sys::clock::monotonic),
            zero: Cell::new(counter.nanoseconds()),
            counter,
            cached: Cell::new(0),
            is_behind: Cell::new(false),
            paused: Cell::new(paused.then_some(0)),
            #[cfg(any(test, feature = "test-util"))]
            auto_advance: Cell::new(true),
        }
    }

    /// Returns the cached time.
    pub(crate) fn now(&self) -> u64 {
        self.cached.get()
    }

    /// Refreshes the cached time, and returns it.
    pub(crate) fn update(&self) -> u64 {
        let now = self.read();
        self.set_now(now);
        now
    }

    /// Sets the cached time to one that was just read.
    #[inline]
    pub(crate) fn set_now(&self, now: u64) {
        self.cached.set(now);
        self.is_behind.set(false);
    }

    /// Leaves an update out. [`catch_up`](Self::catch_up) makes up for it before user code runs.
    #[inline]
    pub(crate) fn leave_behind(&self) {
        self.is_behind.set(true);
    }

    /// Refreshes the cached time if an update was left out.
    #[inline]
    pub(crate) fn catch_up(&self) {
        if self.is_behind.get() {
            self.update();
        }
    }

    /// Returns the time at this moment.
    pub(crate) fn read(&self) -> u64 {
        match self.paused.get() {
            Some(now) => now,
            None => self.counter.nanoseconds().wrapping_sub(self.zero.get()),
        }
    }

    pub(crate) fn instant(&self, time: u64) -> Instant {
        self.start + Duration::from_nanos(time)
    }

    /// Returns the time of an instant; zero for an instant before the loop was created.
    pub(crate) fn time(&self, instant: Instant) -> u64 {
        nanoseconds(instant.saturating_duration_since(self.start))
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.paused.get().is_some()
    }

    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn auto_advance(&self) -> bool {
        self.auto_advance.get()
    }

    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn set_auto_advance(&self, enabled: bool) {
        self.auto_advance.set(enabled);
    }

    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn pause(&self) {
        if !self.is_paused() {
            self.paused.set(Some(self.read()));
        }
    }

    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn resume(&self) {
        if let Some(now) = self.paused.take() {
            self.zero.set(self.counter.nanoseconds().wrapping_sub(now));
        }
    }

    /// Advances a paused clock to `time`; it never goes back.
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn advance_to(&self, time: u64) {
        if let Some(now) = self.paused.get() {
            // Before the end of time: what is due at [`NEVER`] never is.
            self.paused.set(Some(now.max(time.min(NEVER - 1))));
        }
    }
}

/// Returns a duration in nanoseconds, saturated at [`NEVER`].
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    duration
        .as_secs()
        .checked_mul(1_000_000_000)
        .and_then(|nanos| nanos.checked_add(duration.subsec_nanos().into()))
        .unwrap_or(NEVER)
}

#[cfg(test)]
mod tests {
    use super::{Clock, NEVER, nanoseconds};
    use std::time::Duration;

    #[test]
    fn durations_saturate() {
        assert_eq!(nanoseconds(Duration::MAX), NEVER);
        assert_eq!(nanoseconds(Duration::from_nanos(NEVER)), NEVER);
        assert_eq!(nanoseconds(Duration::new(1, 5)), 1_000_000_005);
    }

    #[test]
    fn a_paused_clock_moves_forward_and_only_by_hand() {
        let clock = Clock::new(true, None);
        assert_eq!(clock.read(), 0);
        clock.advance_to(50);
        clock.advance_to(20);
        assert_eq!(clock.read(), 50);
        assert_eq!(clock.now(), 0, "cached until updated");
        clock.update();
        assert_eq!(clock.now(), 50);
    }

    #[test]
    fn an_update_that_was_left_out_is_made_up_once() {
        let clock = Clock::new(true, None);
        clock.advance_to(50);
        clock.catch_up();
        assert_eq!(clock.now(), 0, "no update was left out");
        clock.leave_behind();
        clock.catch_up();
        assert_eq!(clock.now(), 50);
        clock.advance_to(60);
        clock.catch_up();
        assert_eq!(clock.now(), 50);
    }

    #[test]
    fn a_resumed_clock_goes_on_from_where_it_stood() {
        let clock = Clock::new(true, None);
        let ahead = nanoseconds(Duration::from_secs(3600));
        clock.advance_to(ahead);
        clock.resume();
        let first = clock.read();
        assert!(first >= ahead, "{first}");
        assert!(clock.read() >= first);
        clock.pause();
        let stopped = clock.read();
        assert_eq!(clock.read(), stopped);
    }
}
