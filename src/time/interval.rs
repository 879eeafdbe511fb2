//! Intervals: ticks at a fixed period.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;

use super::instant::Instant;
use super::now;
use super::sleep::{Sleep, sleep_until};

/// What an interval does about missed ticks: it was not polled in time, or the thread was busy.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::time::{MissedTicks, advance, interval};
///
/// #[phaseloop::main(start_paused=true)]
/// async fn main() {
///     let mut ticks = interval(Duration::from_secs(1));
///     ticks.set_missed_ticks(MissedTicks::Skip);
///     let first = ticks.tick().await;
///     advance(Duration::from_millis(3500)).await; // two and a half ticks are missed
///     ticks.tick().await;
///     // The next one is due at the next multiple of the period.
///     assert_eq!(ticks.tick().await - first, Duration::from_secs(4));
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "MissedTickBehavior")]
pub enum MissedTicks {
    /// The next tick is one period after the late tick was returned. The pace drifts, as with
    /// repeating timers of libuv and Node.
    #[default]
    Delay,
    /// The next tick is the next future multiple of the period, counted from the start. The pace
    /// keeps its grid, and missed ticks are skipped.
    Skip,
    /// Missed ticks follow at once, one after the other, until the interval has caught up.
    Burst,
}

/// Creates an interval that ticks every `period`; the first tick completes at once, in the poll
/// that asks for it.
///
/// Each further tick completes in the timers phase, like a [`sleep`](super::sleep), and never
/// early. A period of zero ticks once a turn. The interval of a dropped loop ticks no more.
///
/// Missed ticks are delayed, unless [`Interval::set_missed_ticks`] sets otherwise. The default of
/// tokio is [`MissedTicks::Burst`].
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
///     let mut interval = phaseloop::time::interval(Duration::from_millis(2));
///     for _ in 0..3 {
///         interval.tick().await;
///     }
///     assert!(start.elapsed() >= Duration::from_millis(4));
/// }
/// ```
#[track_caller]
#[doc(alias = "setInterval")]
pub fn interval(period: Duration) -> Interval {
    Interval {
        is_new: true,
        ..interval_at(now(), period)
    }
}

/// Creates an interval that ticks every `period`, the first time at `start`; see [`interval`].
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::time::{interval_at, now};
///
/// #[phaseloop::main]
/// async fn main() {
///     let period = Duration::from_millis(2);
///     let start = now() + period;
///     let mut interval = interval_at(start, period);
///     interval.tick().await;
///     assert!(now() >= start, "the first tick waits for the start");
/// }
/// ```
#[track_caller]
pub fn interval_at(start: impl Into<Instant>, period: Duration) -> Interval {
    let start = start.into();
    Interval {
        sleep: sleep_until(start),
        next: Some(start),
        period,
        missed_ticks: MissedTicks::default(),
        is_new: false,
    }
}

/// Ticks at a fixed period, returned by [`interval`] and [`interval_at`]. It is also a [`Stream`]
/// that never ends.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::time::{Instant, interval};
///
/// #[phaseloop::main(start_paused=true)]
/// async fn main() {
///     let start = Instant::now();
///     let mut ticks = interval(Duration::from_secs(60));
///     ticks.tick().await; // at once
///     ticks.tick().await;
///     assert_eq!(start.elapsed(), Duration::from_secs(60));
/// }
/// ```
pub struct Interval {
    sleep: Sleep,
    /// The deadline of the next tick. `None`: beyond the range of the clock, so it never comes.
    next: Option<Instant>,
    period: Duration,
    missed_ticks: MissedTicks,
    /// Whether the first tick, which waits for nothing, is still to come.
    is_new: bool,
}

impl std::fmt::Debug for Interval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interval")
            .field("period", &self.period)
            .field("missed_ticks", &self.missed_ticks)
            .finish_non_exhaustive()
    }
}

impl Interval {
    /// Waits for the next tick and returns the time at which it was due.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no tick.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::time::{Instant, interval};
    ///
    /// #[phaseloop::main(start_paused=true)]
    /// async fn main() {
    ///     let start = Instant::now();
    ///     let mut ticks = interval(Duration::from_secs(60));
    ///     ticks.tick().await; // at once
    ///     ticks.tick().await;
    ///     assert_eq!(start.elapsed(), Duration::from_secs(60));
    /// }
    /// ```
    pub async fn tick(&mut self) -> Instant {
        std::future::poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// Polls for the next tick; the function behind [`tick`](Self::tick).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{future::poll_fn, time::Duration};
    /// use phaseloop::time::interval;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let mut ticks = interval(Duration::from_millis(1));
    ///     let first = poll_fn(|cx| ticks.poll_tick(cx)).await;
    ///     assert!(poll_fn(|cx| ticks.poll_tick(cx)).await > first);
    /// }
    /// ```
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        let Some(due) = self.next else {
            return Poll::Pending;
        };
        if !self.is_new && Pin::new(&mut self.sleep).poll(cx).is_pending() {
            return Poll::Pending;
        }
        // The sleeps of a dropped loop end at once: whoever polls this on another loop would be
        // ready without end.
        if self.sleep.is_of_dropped_loop() {
            self.next = None;
            return Poll::Pending;
        }
        self.set_next(self.after(due));
        Poll::Ready(due)
    }

    /// Sets what happens to missed ticks. The default is [`MissedTicks::Delay`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::time::{MissedTicks, advance, interval};
    ///
    /// #[phaseloop::main(start_paused=true)]
    /// async fn main() {
    ///     let mut ticks = interval(Duration::from_secs(1));
    ///     ticks.set_missed_ticks(MissedTicks::Skip);
    ///     let first = ticks.tick().await;
    ///     advance(Duration::from_millis(3500)).await; // two and a half ticks are missed
    ///     ticks.tick().await;
    ///     // The next one is due at the next multiple of the period.
    ///     assert_eq!(ticks.tick().await - first, Duration::from_secs(4));
    /// }
    /// ```
    #[doc(alias = "set_missed_tick_behavior")]
    pub fn set_missed_ticks(&mut self, missed_ticks: MissedTicks) {
        self.missed_ticks = missed_ticks;
    }

    /// Reschedules the next tick to one period from now. Later ticks follow it at the period.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::time::{Instant, interval};
    ///
    /// #[phaseloop::main(start_paused=true)]
    /// async fn main() {
    ///     let start = Instant::now();
    ///     let mut ticks = interval(Duration::from_secs(10));
    ///     ticks.tick().await;
    ///     ticks.reset_after(Duration::from_secs(1));
    ///     ticks.tick().await;
    ///     assert_eq!(start.elapsed(), Duration::from_secs(1));
    ///     ticks.reset_at(start + Duration::from_secs(5));
    ///     ticks.tick().await;
    ///     ticks.reset(); // a period from now
    ///     ticks.tick().await;
    ///     assert_eq!(start.elapsed(), Duration::from_secs(15));
    /// }
    /// ```
    pub fn reset(&mut self) {
        self.reset_after(self.period);
    }

    /// Reschedules the next tick to this moment: it completes in the next timers phase. Later ticks
    /// follow it at the period.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::time::{interval, now};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let mut interval = interval(Duration::from_secs(3600));
    ///     interval.tick().await;
    ///     interval.reset_immediately();
    ///     assert!(interval.tick().await <= now(), "not in an hour");
    /// }
    /// ```
    pub fn reset_immediately(&mut self) {
        self.reset_at(now());
    }

    /// Reschedules the next tick to `after` from now. Later ticks follow it at the period.
    ///
    /// A time beyond the range of the clock never comes.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::time::{Instant, interval};
    ///
    /// #[phaseloop::main(start_paused=true)]
    /// async fn main() {
    ///     let start = Instant::now();
    ///     let mut ticks = interval(Duration::from_secs(10));
    ///     ticks.tick().await;
    ///     ticks.reset_after(Duration::from_secs(1));
    ///     ticks.tick().await;
    ///     assert_eq!(start.elapsed(), Duration::from_secs(1));
    ///     ticks.reset_at(start + Duration::from_secs(5));
    ///     ticks.tick().await;
    ///     ticks.reset(); // a period from now
    ///     ticks.tick().await;
    ///     assert_eq!(start.elapsed(), Duration::from_secs(15));
    /// }
    /// ```
    pub fn reset_after(&mut self, after: Duration) {
        self.set_next(now().checked_add(after));
    }

    /// Reschedules the next tick to `deadline`. Later ticks follow it at the period.
    ///
    /// A deadline that has passed is due at once. The ticks between it and now are missed ticks:
    /// [`MissedTicks`] applies to them.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::time::{Instant, interval};
    ///
    /// #[phaseloop::main(start_paused=true)]
    /// async fn main() {
    ///     let start = Instant::now();
    ///     let mut ticks = interval(Duration::from_secs(10));
    ///     ticks.tick().await;
    ///     ticks.reset_after(Duration::from_secs(1));
    ///     ticks.tick().await;
    ///     assert_eq!(start.elapsed(), Duration::from_secs(1));
    ///     ticks.reset_at(start + Duration::from_secs(5));
    ///     ticks.tick().await;
    ///     ticks.reset(); // a period from now
    ///     ticks.tick().await;
    ///     assert_eq!(start.elapsed(), Duration::from_secs(15));
    /// }
    /// ```
    pub fn reset_at(&mut self, deadline: impl Into<Instant>) {
        self.set_next(Some(deadline.into()));
    }

    /// The time between two ticks.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::time::interval;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     assert_eq!(interval(Duration::from_secs(1)).period(), Duration::from_secs(1));
    /// }
    /// ```
    #[must_use]
    pub fn period(&self) -> Duration {
        self.period
    }

    fn set_next(&mut self, next: Option<Instant>) {
        self.is_new = false;
        self.next = next;
        if let Some(next) = next {
            self.sleep.reset(next);
        }
    }

    /// The deadline of the tick after the one that was due at `due`.
    fn after(&self, due: Instant) -> Option<Instant> {
        let on_grid = due.checked_add(self.period)?;
        let now = now();
        if on_grid > now {
            return Some(on_grid);
        }
        match self.missed_ticks {
            MissedTicks::Burst => Some(on_grid),
            MissedTicks::Delay => now.checked_add(self.period),
            MissedTicks::Skip => {
                let period = self.period.as_nanos().max(1);
                let into_period = (now - due).as_nanos() % period;
                // The remainder is below the period, which fits.
                let rest = Duration::from_nanos(u64::try_from(period - into_period).ok()?);
                now.checked_add(rest)
            }
        }
    }
}

impl Stream for Interval {
    type Item = Instant;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Instant>> {
        self.poll_tick(cx).map(Some)
    }
}
