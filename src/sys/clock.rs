//! The monotonic clock. No other module of the crate reads it.
#![cfg_attr(
    any(target_os = "linux", target_os = "android"),
    allow(unsafe_code, reason = "a call of the C library")
)]

use std::cell::Cell;
#[cfg(any(target_os = "linux", target_os = "android"))]
use std::mem::MaybeUninit;
use std::time::Instant;

/// Reads the wall clock.
pub(crate) fn wall() -> std::time::SystemTime {
    std::time::SystemTime::now()
}

/// Reads the monotonic clock.
pub(crate) fn monotonic() -> Instant {
    Instant::now()
}

/// Counts nanoseconds from its creation, or from the value it was last set to.
pub(crate) struct Stopwatch {
    counter: Counter,
    /// The value of the counter at time zero. Differences wrap, since the watch may be set to more
    /// than the counter's value.
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

/// Reads the clock as a number, which is cheaper than the difference of two [`Instant`]s. A turn
/// reads it twice, and so does a job of the pool.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) struct Counter;

#[cfg(any(target_os = "linux", target_os = "android"))]
impl Counter {
    pub(crate) fn new() -> Self {
        Self
    }

    #[inline]
    #[expect(
        clippy::unused_self,
        reason = "the signature is shared with the other systems, whose counters have a beginning"
    )]
    pub(crate) fn nanoseconds(&self) -> u64 {
        let mut time = MaybeUninit::<libc::timespec>::uninit();
        // SAFETY: the pointer is valid during the call. The call cannot fail, since Linux has this
        // clock, and it writes the time.
        let time = unsafe {
            libc::clock_gettime(libc::CLOCK_MONOTONIC, time.as_mut_ptr());
            time.assume_init()
        };
        // The time since boot is not negative, and far from overflow.
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) struct Counter {
    start: Instant,
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl Counter {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    pub(crate) fn nanoseconds(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
