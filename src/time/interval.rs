//! Ticks at a steady pace.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::Stream;

use super::now;
use super::sleep::{Sleep, sleep_until};

/// What an interval does about ticks that were missed, because nobody awaited it or the thread was busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissedTicks {
    /// The next tick is one period after the late one was seen: the pace drifts, nothing is made up for. What libuv's
    /// and Node's repeating timers do.
    #[default]
    Delay,
    /// The next tick is the next multiple of the period from the start that is still to come: the pace stays on its
    /// grid, missed ticks are lost.
    Skip,
    /// Missed ticks follow at once, one after the other, until the interval is on its grid again.
    Burst,
}

/// Ticks every `period`, the first time at once.
///
/// A tick ends in the timers phase, like a [`sleep`](super::sleep), and never before its time. What becomes of missed
/// ticks is set by [`Interval::set_missed_ticks`]. A period of zero ticks once a turn.
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
/// phaseloop::block_on(async {
///     let start = Instant::now();
///     let mut interval = phaseloop::time::interval(Duration::from_millis(2));
///     for _ in 0..3 {
///         interval.tick().await;
///     }
///     assert!(start.elapsed() >= Duration::from_millis(4));
/// });
/// ```
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    interval_at(now(), period)
}

/// Ticks every `period`, the first time at `start`; see [`interval`].
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    Interval {
        sleep: sleep_until(start),
        next: Some(start),
        period,
        missed_ticks: MissedTicks::default(),
    }
}

/// Ticks at a steady pace. Made by [`interval`] and [`interval_at`]; also a [`Stream`] that never ends.
#[derive(Debug)]
pub struct Interval {
    sleep: Sleep,
    /// When the next tick is due. `None`: beyond the range of the clock, never.
    next: Option<Instant>,
    period: Duration,
    missed_ticks: MissedTicks,
}

impl Interval {
    /// Waits for the next tick and returns when it was due.
    ///
    /// # Cancel safety
    ///
    /// A tick that was not returned is not lost.
    pub async fn tick(&mut self) -> Instant {
        std::future::poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// The poll function of [`tick`](Self::tick).
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        let Some(due) = self.next else {
            return Poll::Pending;
        };
        if Pin::new(&mut self.sleep).poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.set_next(self.after(due));
        Poll::Ready(due)
    }

    /// Sets what becomes of missed ticks; [`MissedTicks::Delay`] unless told otherwise.
    pub fn set_missed_ticks(&mut self, missed_ticks: MissedTicks) {
        self.missed_ticks = missed_ticks;
    }

    /// Makes the next tick due one period from now.
    pub fn reset(&mut self) {
        self.set_next(now().checked_add(self.period));
    }

    /// The time between two ticks.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.period
    }

    fn set_next(&mut self, next: Option<Instant>) {
        self.next = next;
        if let Some(next) = next {
            self.sleep.reset(next);
        }
    }

    /// When the tick after the one that was due at `due` is due.
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
                // Below the period, which fits.
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
