//! Yielding within the microtask lane.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Moves the task to the back of the microtask lane: every queued microtask runs first.
///
/// Timers and I/O do not run first: the lane is drained to its end before the loop goes on. Use
/// [`yield_now_immediate`](crate::task::yield_now_immediate) to let the loop make a turn.
///
/// # Cancel safety
///
/// Dropping the future has no effect.
///
/// # Examples
///
/// ```
/// use std::{cell::RefCell, rc::Rc};
/// use phaseloop::{spawn, task::yield_now};
///
/// let log = Rc::new(RefCell::new(Vec::new()));
/// let other = log.clone();
/// phaseloop::block_on(async {
///     spawn(async move { other.borrow_mut().push("other") }).detach();
///     log.borrow_mut().push("before");
///     yield_now().await;
///     log.borrow_mut().push("after");
/// });
/// assert_eq!(*log.borrow(), ["before", "other", "after"]);
/// ```
pub fn yield_now() -> YieldNow {
    YieldNow { yielded: false }
}

/// The future of [`yield_now`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct YieldNow {
    yielded: bool,
}

impl Future for YieldNow {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
