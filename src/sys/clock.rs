//! The monotonic clock: the only place in the crate that asks the system for the time.
#![cfg_attr(
    any(target_os = "linux", target_os = "android"),
    allow(unsafe_code, reason = "a call of the C library")
)]

use std::time::Instant;

/// Reads the monotonic clock.
pub(crate) fn monotonic() -> Instant {
    Instant::now()
}

/// A stopwatch: nanoseconds since it was made.
pub(crate) struct Stopwatch {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    start: u64,
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    start: Instant,
}

/// On Linux the clock is read as a number: cheaper than a difference of two [`Instant`]s, and read twice a turn.
#[cfg(any(target_os = "linux", target_os = "android"))]
impl Stopwatch {
    pub(crate) fn new() -> Self {
        Self {
            start: Self::clock(),
        }
    }

    #[inline]
    pub(crate) fn elapsed(&self) -> u64 {
        Self::clock() - self.start
    }

    #[inline]
    fn clock() -> u64 {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the pointer is valid for the time of the call. It cannot fail: Linux has this clock.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
        // Time since the machine was started: not negative, and far from overflow.
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
impl Stopwatch {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    pub(crate) fn elapsed(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}
