//! Time: sleeps, deadlines, intervals, and libuv's timers.
//!
//! ```
//! use std::time::Duration;
//! use phaseloop::time::{interval, sleep, timeout};
//!
//! #[phaseloop::main]
//! async fn main() {
//!     let mut ticks = interval(Duration::from_millis(1));
//!     for number in 0..3 {
//!         ticks.tick().await; // the first one at once
//!         println!("tick {number}");
//!     }
//!     let slow = sleep(Duration::from_secs(3600));
//!     assert!(timeout(Duration::from_millis(5), slow).await.is_err());
//! }
//! ```
//!
//! There are two clocks, on purpose:
//!
//! | | counts from | fires |
//! |---|---|---|
//! | [`sleep`], [`timeout`], [`interval`] | the real clock, at the call | never early |
//! | [`Timer`] | [the loop's cached time], as in libuv | at that time plus its timeout, or later |
//!
//! After a callback that took long the cached time is old, so a [`Timer`] started then fires
//! earlier than a sleep would.
//!
//! [the loop's cached time]: crate::LoopHandle::now
//!
//! Both wait in one heap and fire in the timers phase, ordered by deadline; equal deadlines fire in
//! the order of their start. A deadline beyond the range of the clock is never reached.
//!
//! The loop waits to the nanosecond on macOS, the BSDs and Linux since 5.11; the kernel adds its
//! slack, which is 50 microseconds on Linux. On Windows, on an older Linux, and where a filter of
//! system calls refuses `epoll_pwait2`, it waits in whole milliseconds, rounded up.
#![cfg_attr(feature = "test-util", doc = include_str!("time/testing.md"))]

mod instant;
mod interval;
mod sleep;
mod timeout;
mod timer;
#[cfg(feature = "test-util")]
mod virtual_clock;

#[cfg(feature = "test-util")]
use std::time::Duration;
use std::time::SystemTime;

pub use instant::Instant;
pub use interval::{Interval, MissedTicks, interval, interval_at};
pub use sleep::{Sleep, sleep, sleep_until};
pub use timeout::{Elapsed, Timeout, timeout, timeout_at};
pub use timer::Timer;
#[cfg(feature = "test-util")]
pub use virtual_clock::{advance, auto_advance, is_paused, pause, resume};

use crate::runtime::loop_handle::LoopHandle;
#[cfg(feature = "test-util")]
use crate::ways_to_wait::shuffled::network::network;

/// The errors of this module, at the path that tokio has for them.
///
/// # Examples
///
/// ```
/// use std::{future::pending, time::Duration};
/// use phaseloop::time::{error::Elapsed, timeout};
///
/// #[phaseloop::main]
/// async fn main() {
///     let late: Result<(), Elapsed> = timeout(Duration::from_millis(1), pending()).await;
///     assert!(late.is_err());
/// }
/// ```
pub mod error {
    #[doc(no_inline)]
    pub use super::timeout::Elapsed;
}

/// Reads the clock of the running loop: the monotonic clock of the OS, unless a test has paused it.
/// [`Instant::now`] does the same, and reads the clock of the OS where no loop runs.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::time::{now, sleep};
///
/// #[phaseloop::main]
/// async fn main() {
///     let start = now();
///     sleep(Duration::from_millis(2)).await;
///     assert!(now() - start >= Duration::from_millis(2));
/// }
/// ```
#[must_use]
#[track_caller]
pub fn now() -> Instant {
    Instant::of(&LoopHandle::current())
}

/// Reads the wall clock: that of the OS, except on a loop with a network in memory (module `sim`,
/// feature `test-util`).
///
/// There it begins with the year 2000, moves with the clock of the loop, and is ahead by the skew
/// of the host (`sim::Host::clock_skew`). A program that reads it in place of `SystemTime::now` can
/// be repeated by its seed.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::time::{sleep, system_now};
///
/// fn main() {
///     phaseloop::shuffle::explore(10, || async {
///         let start = system_now();
///         sleep(Duration::from_secs(3600)).await;
///         assert!(system_now().duration_since(start).unwrap() >= Duration::from_secs(3600));
///     });
/// }
/// ```
#[must_use]
pub fn system_now() -> SystemTime {
    #[cfg(feature = "test-util")]
    if let Some(time) = simulated_now() {
        return time;
    }
    crate::sys::clock::wall()
}

#[cfg(feature = "test-util")]
fn simulated_now() -> Option<SystemTime> {
    /// From 1970 to 2000.
    const START: Duration = Duration::from_secs(946_684_800);
    let handle = LoopHandle::try_current()?;
    let core = handle.core();
    let skew = network(core)?.borrow().current_skew();
    let length = Duration::from_nanos(skew.unsigned_abs());
    let time = SystemTime::UNIX_EPOCH + START + Duration::from_nanos(core.executor.clock.read());
    Some(if skew < 0 {
        time - length
    } else {
        time + length
    })
}
