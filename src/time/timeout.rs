//! A time limit for any future.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;

use super::instant::Instant;
use super::sleep::{Sleep, sleep, sleep_until};
use crate::error::debug_as_display;

/// Limits the time of `future`. Once `duration` has passed, the returned future completes with
/// [`Elapsed`].
///
/// The inner future is not dropped at that moment, but together with the [`Timeout`];
/// [`Timeout::into_inner`] returns it, to go on with it.
///
/// The inner future is polled first: if it is ready, it wins against a deadline that has passed.
/// The time is counted as by [`sleep`].
///
/// # Errors
///
/// [`Elapsed`] if the time has passed first.
///
/// # Cancel safety
///
/// The cancel safety of `future` applies.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use std::{future::pending, time::Duration};
/// use phaseloop::time::timeout;
///
/// #[phaseloop::main]
/// async fn main() {
///     assert!(timeout(Duration::from_millis(1), pending::<()>()).await.is_err());
///     assert_eq!(timeout(Duration::ZERO, async { 1 }).await, Ok(1));
/// }
/// ```
#[track_caller]
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    Timeout {
        future: future.into_future(),
        sleep: sleep(duration),
    }
}

/// Limits the time of `future` to `deadline`; see [`timeout`].
///
/// # Errors
///
/// [`Elapsed`] if the deadline has passed first.
///
/// # Cancel safety
///
/// The cancel safety of `future` applies.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use std::{future::pending, time::Duration};
/// use phaseloop::time::{now, timeout_at};
///
/// #[phaseloop::main]
/// async fn main() {
///     // One deadline for several steps.
///     let deadline = now() + Duration::from_millis(2);
///     assert_eq!(timeout_at(deadline, async { 1 }).await, Ok(1));
///     assert!(timeout_at(deadline, pending::<()>()).await.is_err());
/// }
/// ```
#[track_caller]
pub fn timeout_at<F: IntoFuture>(
    deadline: impl Into<Instant>,
    future: F,
) -> Timeout<F::IntoFuture> {
    Timeout {
        future: future.into_future(),
        sleep: sleep_until(deadline),
    }
}

pin_project! {
    /// The future of [`timeout`] and [`timeout_at`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::time::{sleep, timeout};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let slow = async {
    ///         sleep(Duration::from_millis(5)).await;
    ///         42
    ///     };
    ///     let mut limited = timeout(Duration::from_millis(1), Box::pin(slow));
    ///     assert!((&mut limited).await.is_err());
    ///     assert_eq!(limited.into_inner().await, 42); // it goes on, without a limit
    /// }
    /// ```
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Timeout<F> {
        #[pin]
        future: F,
        #[pin]
        sleep: Sleep,
    }
}

impl<F> Timeout<F> {
    /// Returns the inner future, without its time limit.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::time::{sleep, timeout};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let slow = async {
    ///         sleep(Duration::from_millis(5)).await;
    ///         42
    ///     };
    ///     let mut limited = timeout(Duration::from_millis(1), Box::pin(slow));
    ///     assert!((&mut limited).await.is_err());
    ///     assert_eq!(limited.into_inner().await, 42); // it goes on, without a limit
    /// }
    /// ```
    pub fn into_inner(self) -> F {
        self.future
    }
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(output) = this.future.poll(cx) {
            return Poll::Ready(Ok(output));
        }
        this.sleep.poll(cx).map(|()| Err(Elapsed(())))
    }
}

/// The error of [`timeout`]: the time has passed before the future was ready.
///
/// # Examples
///
/// ```
/// use std::{future::pending, time::Duration};
/// use phaseloop::time::timeout;
///
/// #[phaseloop::main]
/// async fn main() {
///     let elapsed = timeout(Duration::from_millis(1), pending::<()>()).await.unwrap_err();
///     println!("{elapsed}");
///     assert_eq!(std::io::Error::from(elapsed).kind(), std::io::ErrorKind::TimedOut);
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Elapsed(());

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the deadline has passed before the future was ready")
    }
}

debug_as_display!(Elapsed {});

impl std::error::Error for Elapsed {}

impl From<Elapsed> for std::io::Error {
    fn from(elapsed: Elapsed) -> Self {
        Self::new(std::io::ErrorKind::TimedOut, elapsed)
    }
}
