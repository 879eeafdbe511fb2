//! Timers: `set_timeout` and `set_interval`.
//!
//! ```
//! use phaseloop_node::{Exit, clear_timeout, run, set_timeout};
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         set_timeout(2, || println!("two milliseconds later"));
//!         let timeout = set_timeout(1, || unreachable!("it was cleared"));
//!         clear_timeout(&timeout);
//!     })
//! }
//! ```
//!
//! All timers of this module share one timer of their loop. When it fires, a *pass* runs the due
//! timers, list by list, and drains the lanes between them.
//!
//! `timers/timeout.rs` is one timer and its life, `timers/lists.rs` the lists that armed timers are
//! in, `timers/pass.rs` the arming of the loop's timer and the pass.

mod lists;
mod pass;
pub mod promises;
mod timeout;

use std::panic::Location;

pub(super) use self::pass::TimerLists;
use self::timeout::{Callback, Kind};
pub use self::timeout::{Timeout, TimeoutId};
use super::context::Node;
use super::delay::Delay;
use crate::site::Site;
use phaseloop::extension::Call;

/// Calls `callback` once, in the timers phase, after `delay`.
///
/// The closure comes last, as everywhere in Rust. The delay counts from now, in whole milliseconds;
/// see [`Delay`] for negative and long ones. The timer keeps the loop alive. Dropping the returned
/// handle does not stop it. Use [`set_timeout_mut`] for a timer that can fire again after a
/// [`refresh`](Timeout::refresh).
///
/// In plain Rust: [`sleep`](phaseloop::time::sleep) in a task.
///
/// # Panics
///
/// When no loop runs on this thread. The listeners of
/// [`process::on_uncaught_exception`](crate::process::on_uncaught_exception) receive a panic
/// of the callback; without a listener, it leaves the call that runs the loop.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, clear_timeout, run, set_timeout};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let text = String::from("later");
///         set_timeout(5, move || println!("{text}"));
///         let never = set_timeout(1, || unreachable!());
///         clear_timeout(&never);
///     })
/// }
/// ```
#[track_caller]
#[inline]
pub fn set_timeout(delay: impl Into<Delay>, callback: impl FnOnce() + 'static) -> Timeout {
    set_timeout_at(delay.into(), Location::caller(), callback)
}

/// Sets a timeout of this module for the line of the program that has caused it.
#[track_caller]
#[inline]
pub(super) fn set_timeout_at(
    delay: Delay,
    site: Site,
    callback: impl FnOnce() + 'static,
) -> Timeout {
    let callback = Callback::once(Call::new(callback));
    Timeout::start(callback, Kind::Once, delay, site)
}

/// Calls `callback` after `delay`, and again after each [`refresh`](Timeout::refresh) of the timer;
/// otherwise like [`set_timeout`].
///
/// The callback receives the timer, so that it can refresh it. The callback is dropped when the
/// timer is cleared, or when the timer has fired and its last handle is dropped.
///
/// # Panics
///
/// When no loop runs on this thread; for a panic of the callback see [`set_timeout`].
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, set_timeout_mut};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let mut rounds = 0;
///         set_timeout_mut(1, move |timer| {
///             rounds += 1;
///             if rounds < 3 {
///                 timer.refresh();
///             }
///         });
///     })
/// }
/// ```
#[track_caller]
pub fn set_timeout_mut(
    delay: impl Into<Delay>,
    callback: impl FnMut(&Timeout) + 'static,
) -> Timeout {
    set_timeout_mut_at(delay.into(), Location::caller(), callback)
}

/// Sets a timer of this module for the line of the program that has caused it.
#[track_caller]
pub(super) fn set_timeout_mut_at(
    delay: Delay,
    site: Site,
    callback: impl FnMut(&Timeout) + 'static,
) -> Timeout {
    Timeout::start(Callback::again(callback), Kind::Refreshed, delay, site)
}

/// Calls `callback` repeatedly, each time `delay` after the start of the previous call; otherwise
/// like [`set_timeout`].
///
/// The callback receives the timer, so that it can stop it. Missed calls are skipped: a callback
/// that takes longer than the delay is called once in the next pass.
///
/// In plain Rust: [`interval`](phaseloop::time::interval).
///
/// # Panics
///
/// When no loop runs on this thread; for a panic of the callback see [`set_timeout`].
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, set_interval};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let mut left = 3;
///         set_interval(1, move |interval| {
///             left -= 1;
///             if left == 0 {
///                 interval.close();
///             }
///         });
///     })
/// }
/// ```
#[track_caller]
pub fn set_interval(delay: impl Into<Delay>, callback: impl FnMut(&Timeout) + 'static) -> Timeout {
    set_interval_at(delay.into(), Location::caller(), callback)
}

/// Sets an interval of this module for the line of the program that has caused it.
#[track_caller]
pub(super) fn set_interval_at(
    delay: Delay,
    site: Site,
    callback: impl FnMut(&Timeout) + 'static,
) -> Timeout {
    Timeout::start(Callback::again(callback), Kind::Interval, delay, site)
}

/// Stops a timeout or an interval. Its callback does not run any more, even if it is due in the
/// running pass.
///
/// Stopping a timer that has fired or was stopped does nothing.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, clear_timeout, run, set_timeout};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let timeout = set_timeout(1, || unreachable!("it was cleared"));
///         clear_timeout(&timeout);
///     })
/// }
/// ```
pub fn clear_timeout(timeout: &Timeout) {
    timeout.close();
}

/// Stops an interval or a timeout; see [`clear_timeout`].
pub fn clear_interval(interval: &Timeout) {
    interval.close();
}

/// Stops the timer with this id. Does nothing if there is none.
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn clear_timeout_by_id(id: TimeoutId) {
    if let Some(timeout) = Node::current().timers.by_id(id) {
        timeout.close();
    }
}
