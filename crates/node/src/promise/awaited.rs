//! The future of a promise that is awaited.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::origin::PROMISE;
use super::{Promise, Reaction};
use crate::async_hooks::Work;
use crate::reason::Reason;
use crate::site::Site;
use phaseloop::extension::frame;
use phaseloop::extension::{NamedWait, WaitKey, hop, note_waker};

impl<T: Clone + 'static> IntoFuture for Promise<T> {
    type Output = Result<T, Reason>;
    type IntoFuture = Awaited<T>;

    #[track_caller]
    fn into_future(self) -> Awaited<T> {
        Awaited {
            promise: self,
            site: Location::caller(),
            progress: Progress::New,
        }
    }
}

impl<T: Clone + 'static> IntoFuture for &Promise<T> {
    type Output = Result<T, Reason>;
    type IntoFuture = Awaited<T>;

    #[track_caller]
    fn into_future(self) -> Awaited<T> {
        self.clone().into_future()
    }
}

/// The future of a [`Promise`] that is awaited. It is ready one microtask after the promise is
/// settled; for a settled promise, one microtask after the first poll.
///
/// # Cancel safety
///
/// Dropping the future loses nothing; the promise is not affected.
///
/// # Examples
///
/// A type that is awaited by way of a promise names the future in its `IntoFuture`:
///
/// ```
/// use phaseloop_node::{Awaited, Promise, Reason, run};
///
/// struct Answer(Promise<u32>);
///
/// impl IntoFuture for Answer {
///     type Output = Result<u32, Reason>;
///     type IntoFuture = Awaited<u32>;
///
///     fn into_future(self) -> Awaited<u32> {
///         self.0.into_future()
///     }
/// }
///
/// fn main() {
///     run(async { assert_eq!(Answer(Promise::resolved(42)).await.unwrap(), 42) })
///         .into_output()
///         .unwrap();
/// }
/// ```
#[must_use = "futures do nothing unless awaited"]
pub struct Awaited<T> {
    promise: Promise<T>,
    /// The line of the `await`.
    site: Site,
    progress: Progress,
}

/// How far a wait is.
#[derive(Clone, Copy)]
enum Progress {
    /// It was not polled yet.
    New,
    /// The promise is settled.
    Begun,
    /// The waker is in the list of waits, and the promise has the key.
    Waits(WaitKey),
}

impl<T: Clone + 'static> Future for Awaited<T> {
    type Output = Result<T, Reason>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match (self.promise.result(), self.progress) {
            (Some(_), Progress::New) => {
                self.begin();
                self.progress = Progress::Begun;
                hop(cx.waker());
            }
            (Some(result), _) => {
                self.end();
                return Poll::Ready(result);
            }
            (None, Progress::Waits(wait)) => {
                note_waker(cx.waker());
                let waker = cx.waker().clone();
                let before = self.promise.0.node.waits.set_waker(wait, waker);
                drop(before);
            }
            (None, _) => {
                self.begin();
                self.park(cx.waker());
            }
        }
        Poll::Pending
    }
}

impl<T> Awaited<T> {
    /// Begins the wait.
    fn begin(&self) {
        self.promise.set_handled();
        if !frame::is_plain() {
            // As in JavaScript, an await is a reaction with a promise of its own.
            let work = Work::begin(PROMISE, self.promise.id()).map(Work::of_hidden_promise);
            if let (Some(work), Some(core)) = (work, self.promise.0.node.core()) {
                core.set_next_work(Box::new(work));
            }
        }
    }

    /// Lets the promise wake the task, and reports name the wait.
    fn park(&mut self, waker: &Waker) {
        note_waker(waker);
        let state = &self.promise.0;
        let wait = NamedWait {
            source: state.source(),
            ..NamedWait::new("promise", "", Some(self.site))
        };
        let wait = state.node.waits.park(wait, waker.clone());
        state.add(Reaction::Wake(wait));
        self.progress = Progress::Waits(wait);
    }

    /// Ends the wait.
    fn end(&mut self) {
        if let Progress::Waits(wait) = self.progress {
            self.progress = Progress::Begun;
            let waker = self.promise.0.node.waits.remove(wait);
            self.promise.0.remove(wait);
            drop(waker);
        }
    }
}

impl<T> Drop for Awaited<T> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<T> fmt::Debug for Awaited<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Awaited").field(&self.promise).finish()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::IntoFuture as _;
    use crate::promise::{Deferred, State};

    #[test]
    fn a_wait_that_is_given_up_leaves_nothing_in_the_promise() {
        phaseloop::block_on(async {
            let promise = Deferred::<()>::new().promise();
            assert!(promise.clone().into_future().now_or_never().is_none());
            assert!(
                matches!(&*promise.0.state.borrow(), State::Pending(waits) if waits.is_empty())
            );
        });
    }
}
