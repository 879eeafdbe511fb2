//! The future of a promise that is awaited.

use std::cell::RefCell;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::origin::PROMISE;
use super::{Promise, Reaction};
use crate::frame::{self, Work};
use crate::node::reason::Reason;

impl<T: Clone + 'static> IntoFuture for Promise<T> {
    type Output = Result<T, Reason>;
    type IntoFuture = Awaited<T>;

    fn into_future(self) -> Awaited<T> {
        Awaited {
            promise: self,
            waker: None,
        }
    }
}

impl<T: Clone + 'static> IntoFuture for &Promise<T> {
    type Output = Result<T, Reason>;
    type IntoFuture = Awaited<T>;

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
/// use phaseloop::node::{Awaited, Promise, Reason, run};
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
/// run(async { assert_eq!(Answer(Promise::resolved(42)).await.unwrap(), 42) })
///     .into_output()
///     .unwrap();
/// ```
#[must_use = "futures do nothing unless awaited"]
pub struct Awaited<T> {
    promise: Promise<T>,
    /// Shared with the promise; `None` before the first poll.
    waker: Option<Rc<RefCell<Option<Waker>>>>,
}

impl<T: Clone + 'static> Future for Awaited<T> {
    type Output = Result<T, Reason>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match (self.promise.result(), &self.waker) {
            (Some(result), Some(_)) => return Poll::Ready(result),
            (None, Some(waker)) => {
                let before = waker.replace(Some(cx.waker().clone()));
                drop(before);
            }
            (Some(_), None) => {
                self.begin();
                self.waker = Some(Rc::default());
                cx.waker().wake_by_ref();
            }
            (None, None) => {
                self.begin();
                let waker = Rc::new(RefCell::new(Some(cx.waker().clone())));
                self.waker = Some(waker.clone());
                self.promise.0.add(Reaction::Wake(waker));
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
                core.set_next_work(work);
            }
        }
    }
}

impl<T> Drop for Awaited<T> {
    fn drop(&mut self) {
        let Some(cell) = &self.waker else { return };
        let waker = cell.take();
        self.promise.0.remove(cell);
        drop(waker);
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
    use crate::node::promise::{Deferred, State};

    #[test]
    fn a_wait_that_is_given_up_leaves_nothing_in_the_promise() {
        crate::block_on(async {
            let promise = Deferred::<()>::new().promise();
            assert!(promise.clone().into_future().now_or_never().is_none());
            assert!(
                matches!(&*promise.0.state.borrow(), State::Pending(waits) if waits.is_empty())
            );
        });
    }
}
