//! Time: sleeps, deadlines, intervals, and libuv's timers.
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
//! the order of their start. A deadline beyond the range of the clock is never reached. The loop
//! waits in whole milliseconds, rounded up.
#![cfg_attr(feature = "test-util", doc = include_str!("time/testing.md"))]

mod interval;
mod sleep;
mod timeout;
mod timer;
#[cfg(feature = "test-util")]
mod virtual_clock;

use std::time::Instant;

pub use interval::{Interval, MissedTicks, interval, interval_at};
#[cfg(feature = "net")]
pub(crate) use sleep::sleep_at;
pub use sleep::{Sleep, sleep, sleep_until};
pub use timeout::{Elapsed, Timeout, timeout, timeout_at};
pub use timer::Timer;
#[cfg(feature = "test-util")]
pub use virtual_clock::{advance, auto_advance, is_paused, pause, resume};

use crate::event_loop::api::loop_handle::LoopHandle;

/// Reads the clock of the running loop: the monotonic clock of the OS, unless a test has paused it.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
#[track_caller]
pub fn now() -> Instant {
    let handle = LoopHandle::current();
    let clock = &handle.core().clock();
    clock.instant(clock.read())
}
