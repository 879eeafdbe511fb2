//! The monotonic clock. No other place in the crate reads the time.
#![cfg_attr(
    any(target_os = "linux", target_os = "android"),
    allow(unsafe_code, reason = "a call of the C library")
)]

use std::cell::Cell;
use std::time::Instant;

/// Reads the monotonic clock.
pub(crate) fn monotonic() -> Instant {
    Instant::now()
}

/// Counts nanoseconds since its creation, or since the value it was last set to.
pub(crate) struct Stopwatch {
    counter: Counter,
    /// The counter's value at zero. Differences wrap, since it may be set to more than the counter
    /// has ever shown.
    zero: Cell<u64>,
}

impl Stopwatch {
    pub(crate) fn new() -> Self {
        let counter = Counter::new();
        let zero = Cell::new(counter.nanoseconds());
        Self { counter, zero }
    }

    #[inline]
    pub(crate) fn elapsed(&self) -> u64 {
        self.counter.nanoseconds().wrapping_sub(self.zero.get())
    }

    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn set(&self, elapsed: u64) {
        self.zero
            .set(self.counter.nanoseconds().wrapping_sub(elapsed));
    }
}

/// On Linux the clock is read as a number, which is cheaper than a difference of two [`Instant`]s.
/// A turn reads it twice.
#[cfg(any(target_os = "linux", target_os = "android"))]
struct Counter;

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Counter {
    fn new() -> Self {
        Self
    }

    #[inline]
    #[expect(
        clippy::unused_self,
        reason = "the signature is shared with the other systems, whose counters have a beginning"
    )]
    fn nanoseconds(&self) -> u64 {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the pointer is valid for the time of the call. It cannot fail: Linux has this
        // clock.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
        // Time since boot is not negative and far from overflow.
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
struct Counter {
    start: Instant,
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl Counter {
    fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    fn nanoseconds(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
