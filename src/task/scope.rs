//! Scopes: tasks that may borrow, and that end before their scope does.

use std::cell::Cell;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::event_loop::current;
use crate::executor::join::JoinError;
use crate::executor::notes::WaitNote;
use crate::frame::{Frame, Framed};
use crate::raw::scope as raw;
pub use crate::raw::scope::Scope;
use crate::task_info::Id;

/// Runs `body` with a [`Scope`], and returns its output when `body` and all tasks of the scope are
/// done.
///
/// Tasks of a scope may borrow from outside of the scope. They are polled by the task that awaits
/// the scope, in the microtask lane: they run concurrently, one at a time. Dropping the future of
/// the scope drops them all.
///
/// # Cancel safety
///
/// Dropping the future drops `body` and all tasks of the scope.
///
/// # Panics
///
/// A panic of `body` or of a task drops the others, and propagates.
///
/// # Examples
///
/// ```
/// use std::{cell::Cell, time::Duration};
/// use phaseloop::{task::scope, time::sleep};
///
/// #[phaseloop::main]
/// async fn main() {
///     let sum = Cell::new(0); // not an `Rc`: the tasks borrow it
///     scope(async |s| {
///         for number in 1..=3 {
///             let sum = &sum;
///             s.spawn(async move {
///                 sleep(Duration::from_millis(1)).await;
///                 sum.set(sum.get() + number);
///             });
///         }
///     })
///     .await;
///     assert_eq!(sum.get(), 6, "all tasks have ended");
/// }
/// ```
pub async fn scope<'env, B, T>(body: B) -> T
where
    B: for<'scope> AsyncFnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let Ok(output) = raw::run(async |scope| Ok::<T, Infallible>(body(scope).await)).await;
    output
}

/// Runs `body` with a [`Scope`] whose tasks may fail. The first error of a task of
/// [`try_spawn`](Scope::try_spawn), or of `body`, drops all others and is returned.
///
/// See [`scope`] for everything else.
///
/// # Errors
///
/// The first error.
///
/// # Cancel safety
///
/// Dropping the future drops `body` and all tasks of the scope.
///
/// # Panics
///
/// A panic of `body` or of a task drops the others, and propagates.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::{task::try_scope, time::sleep};
///
/// #[phaseloop::main]
/// async fn main() {
///     let result: Result<(), &str> = try_scope(async |s| {
///         s.try_spawn(async {
///             sleep(Duration::from_secs(3600)).await; // dropped
///             Ok(())
///         });
///         s.try_spawn(async { Err::<(), _>("no") });
///         Ok(())
///     })
///     .await;
///     assert_eq!(result, Err("no"));
/// }
/// ```
pub async fn try_scope<'env, B, T, E>(body: B) -> Result<T, E>
where
    B: for<'scope> AsyncFnOnce(&'scope Scope<'scope, 'env, E>) -> Result<T, E>,
{
    raw::run(body).await
}

impl<'scope, E> Scope<'scope, '_, E> {
    /// Spawns a task of the scope. The scope waits for it; the handle may be dropped. An `Err` that
    /// the task returns goes to the handle only; see [`try_spawn`](Self::try_spawn).
    ///
    /// Its first poll comes when the task that awaits the scope is polled next, or at the end of
    /// its current poll.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::cell::Cell;
    /// use phaseloop::task::scope;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let sum = Cell::new(0);
    ///     scope(async |scope| {
    ///         let first = scope.spawn(async { sum.set(sum.get() + 1) }); // borrows `sum`
    ///         scope.spawn(async { sum.set(sum.get() + 2) });
    ///         first.await.unwrap();
    ///     })
    ///     .await;
    ///     assert_eq!(sum.get(), 3);
    /// }
    /// ```
    #[track_caller]
    pub fn spawn<F>(&'scope self, future: F) -> ScopedJoinHandle<F::Output>
    where
        F: Future + 'scope,
        F::Output: 'scope,
    {
        self.start(async move { Some(future.await) })
    }

    /// Spawns a task whose error ends the scope: all other tasks and the body are dropped, and
    /// [`try_scope`] returns the error.
    #[track_caller]
    pub fn try_spawn<F, T>(&'scope self, future: F) -> ScopedJoinHandle<T>
    where
        F: Future<Output = Result<T, E>> + 'scope,
        T: 'scope,
    {
        self.start(async move {
            match future.await {
                Ok(value) => Some(value),
                Err(error) => {
                    self.fail(error);
                    None
                }
            }
        })
    }

    /// Drops all tasks of the scope, and refuses further ones: their handles return an error. The
    /// body goes on.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::future::pending;
    /// use phaseloop::task::scope;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     scope(async |scope| {
    ///         let forever = scope.spawn(pending::<()>());
    ///         scope.cancel();
    ///         assert!(forever.await.is_err());
    ///     })
    ///     .await;
    /// }
    /// ```
    pub fn cancel(&self) {
        self.clear();
    }

    #[track_caller]
    fn start<T: 'scope>(
        &'scope self,
        future: impl Future<Output = Option<T>> + 'scope,
    ) -> ScopedJoinHandle<T> {
        let slot = Rc::new(Slot {
            output: Cell::new(None),
            is_over: Cell::new(false),
            waker: Cell::new(None),
        });
        let end = End { slot: slot.clone() };
        let task = async move {
            // Captured as a whole, so that it is dropped with the task, also before its first poll.
            let end = end;
            let output = future.await;
            end.slot.output.set(output);
        };
        self.push(Framed::new(Frame::current(), task));
        ScopedJoinHandle {
            slot,
            note: WaitNote::new("scoped task", "", Some(Location::caller())),
        }
    }
}

impl<E> fmt::Debug for Scope<'_, '_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}

/// What a task of a scope shares with its handle.
struct Slot<T> {
    output: Cell<Option<T>>,
    is_over: Cell<bool>,
    waker: Cell<Option<Waker>>,
}

/// Ends a task: it has returned, or was dropped.
struct End<T> {
    slot: Rc<Slot<T>>,
}

impl<T> Drop for End<T> {
    fn drop(&mut self) {
        self.slot.is_over.set(true);
        if let Some(waker) = self.slot.waker.take() {
            waker.wake();
        }
    }
}

/// Awaits a task of a [`Scope`]. Dropping the handle has no effect on the task.
///
/// Its output is the task's output, or an error for which
/// [`is_cancelled`](JoinError::is_cancelled) is `true` if the task was dropped, or has failed.
///
/// # Cancel safety
///
/// Dropping the handle has no effect.
///
/// # Examples
///
/// ```
/// #[phaseloop::main]
/// async fn main() {
///     let text = String::from("borrowed");
///     let length = phaseloop::task::scope(async |s| {
///         let task = s.spawn(async { text.len() });
///         task.await.unwrap()
///     })
///     .await;
///     assert_eq!(length, 8);
/// }
/// ```
pub struct ScopedJoinHandle<T> {
    slot: Rc<Slot<T>>,
    note: WaitNote,
}

impl<T> ScopedJoinHandle<T> {
    /// Returns whether the task has returned or was dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::cell::Cell;
    /// use phaseloop::task::scope;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let sum = Cell::new(0);
    ///     scope(async |scope| {
    ///         let first = scope.spawn(async { sum.set(sum.get() + 1) }); // borrows `sum`
    ///         scope.spawn(async { sum.set(sum.get() + 2) });
    ///         first.await.unwrap();
    ///     })
    ///     .await;
    ///     assert_eq!(sum.get(), 3);
    /// }
    /// ```
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.slot.is_over.get()
    }
}

impl<T> Future for ScopedJoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = if self.slot.is_over.get() {
            let output = self.slot.output.take();
            Poll::Ready(output.ok_or_else(|| JoinError::cancelled(Id::NONE)))
        } else {
            self.slot.waker.set(Some(cx.waker().clone()));
            Poll::Pending
        };
        current::note_wait(&mut self.note, cx, polled)
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedJoinHandle")
            .field("is_finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}
