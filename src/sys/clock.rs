//! The monotonic clock. No other module of the crate reads it.
#![cfg_attr(
    any(target_os = "linux", target_os = "android"),
    allow(unsafe_code, reason = "a call of the C library")
)]

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
        // Not by rustix, which reads the vDSO itself: under Valgrind that is a segmentation fault.
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
