//! The sleep future.
//!
//! ```text
//!   sleep() ──> not armed ── first poll ──> in the heap ── timers phase ──> fired
//!                                              └── drop: out of the heap ──┘
//! ```

use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use super::instant::Instant;
use crate::clock::nanoseconds;
use crate::event_loop::phases::timers::Payload;
use crate::event_loop::phases::timers::heap::TimerKey;
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;

/// Waits for `duration`, counted from this call.
///
/// The future completes in the timers phase, and never early. A duration of zero also waits for the
/// next timers phase, so the current turn goes on. A duration beyond the range of the clock sleeps
/// for ever.
///
/// # Cancel safety
///
/// Dropping the future removes it from the timer heap. Nothing is lost.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use std::time::{Duration, Instant};
///
/// #[phaseloop::main]
/// async fn main() {
///     let start = Instant::now();
///     phaseloop::time::sleep(Duration::from_millis(5)).await;
///     assert!(start.elapsed() >= Duration::from_millis(5));
/// }
/// ```
#[track_caller]
#[doc(alias = "delay")]
#[doc(alias = "setTimeout")]
pub fn sleep(duration: Duration) -> Sleep {
    Sleep::after(duration, Location::caller())
}

/// Waits until `deadline`; see [`sleep`]. A deadline in the past completes in the next timers
/// phase.
///
/// # Cancel safety
///
/// Dropping the future removes it from the timer heap. Nothing is lost.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::time::{now, sleep_until};
///
/// #[phaseloop::main]
/// async fn main() {
///     let deadline = now() + Duration::from_millis(2);
///     sleep_until(deadline).await;
///     assert!(now() >= deadline);
/// }
/// ```
#[track_caller]
pub fn sleep_until(deadline: impl Into<Instant>) -> Sleep {
    let handle = LoopHandle::current();
    let deadline = handle
        .core()
        .executor
        .clock
        .time(deadline.into().into_std());
    Sleep::new(handle, deadline, Location::caller())
}

/// The future of [`sleep`] and [`sleep_until`].
///
/// Its first poll arms it. From then on it keeps the loop alive, unless [`unref`](Sleep::unref) was
/// called. If its loop is dropped, it ends at once.
///
/// # Examples
///
/// ```
/// use std::{pin::pin, time::Duration};
/// use phaseloop::time::sleep;
///
/// #[phaseloop::main]
/// async fn main() {
///     let mut sleep = pin!(sleep(Duration::from_millis(1)));
///     assert!(!sleep.is_elapsed());
///     sleep.as_mut().await;
///     assert!(sleep.is_elapsed());
/// }
/// ```
#[must_use = "futures do nothing unless awaited"]
pub struct Sleep {
    handle: LoopHandle,
    deadline: u64,
    site: Site,
    /// The entry in the heap, from the first poll until this future has seen that it fired.
    key: Option<TimerKey>,
    has_fired: bool,
    referenced: bool,
}

impl Sleep {
    /// Sleeps on behalf of the caller at `site`.
    #[track_caller]
    pub(crate) fn after(duration: Duration, site: Site) -> Self {
        let handle = LoopHandle::current();
        let now = handle.core().executor.clock.read();
        Self::new(handle, now.saturating_add(nanoseconds(duration)), site)
    }

    pub(crate) fn new(handle: LoopHandle, deadline: u64, site: Site) -> Self {
        Self {
            handle,
            deadline,
            site,
            key: None,
            has_fired: false,
            referenced: true,
        }
    }

    /// The time at which the sleep ends.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::time::{Instant, sleep};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let sleep = sleep(Duration::from_secs(1));
    ///     assert!(sleep.deadline() <= Instant::now() + Duration::from_secs(1));
    /// }
    /// ```
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.handle
            .core()
            .executor
            .clock
            .instant(self.deadline)
            .into()
    }

    /// Whether the sleep has ended.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{pin::pin, time::Duration};
    /// use phaseloop::time::sleep;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let mut sleep = pin!(sleep(Duration::from_millis(1)));
    ///     assert!(!sleep.is_elapsed());
    ///     sleep.as_mut().await;
    ///     assert!(sleep.is_elapsed());
    /// }
    /// ```
    #[must_use]
    pub fn is_elapsed(&self) -> bool {
        match self.key {
            Some(key) => !self.handle.core().phases.is_sleep_armed(key),
            None => self.has_fired,
        }
    }

    /// Changes the deadline. A sleep that has ended starts again, with its next poll.
    ///
    /// A task that waits for the sleep is woken at the new deadline, also if other code has called
    /// `reset` and the task was not polled since.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::time::{Instant, sleep};
    ///
    /// #[phaseloop::main(start_paused=true)]
    /// async fn main() {
    ///     // The time limit of a connection: each message moves it.
    ///     let start = Instant::now();
    ///     let mut limit = sleep(Duration::from_secs(10));
    ///     limit.reset(start + Duration::from_secs(30));
    ///     limit.await;
    ///     assert_eq!(start.elapsed(), Duration::from_secs(30));
    /// }
    /// ```
    pub fn reset(&mut self, deadline: impl Into<Instant>) {
        let core = self.handle.core();
        self.deadline = core.executor.clock.time(deadline.into().into_std());
        self.has_fired = false;
        if let Some(key) = self.key.take() {
            self.key = core.rearm_sleep(key, self.deadline, self.referenced);
        }
    }

    /// Returns whether the loop was dropped.
    pub(super) fn is_of_dropped_loop(&self) -> bool {
        self.handle.core().executor.is_closed()
    }

    /// Stops this sleep from keeping the loop alive.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{run, spawn, time::sleep};
    ///
    /// fn main() {
    ///     // `run` ends when nothing keeps the loop alive: this sleep does not.
    ///     run(async {
    ///         spawn(sleep(Duration::from_secs(3600)).unref()).detach();
    ///     })
    ///     .unwrap();
    /// }
    /// ```
    pub fn unref(mut self) -> Self {
        if let Some(key) = self.key {
            self.handle.core().unref_sleep(key);
        }
        self.referenced = false;
        self
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let core = this.handle.core();
        if let Some(key) = this.key {
            if core.poll_sleep(key, cx.waker()) {
                return Poll::Pending;
            }
            this.key = None;
            this.has_fired = true;
        }
        if this.has_fired {
            return Poll::Ready(());
        }
        core.note_waker(cx.waker());
        let payload = Payload::Sleep {
            waker: cx.waker().clone(),
            site: this.site,
        };
        this.key = Some(core.arm_sleep(this.deadline, payload, this.referenced));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.handle.core().disarm_sleep(key, self.referenced);
        }
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("deadline", &self.deadline())
            .field("elapsed", &self.is_elapsed())
            .finish_non_exhaustive()
    }
}
