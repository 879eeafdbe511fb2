//! The futures that wait for a source: for its readiness, or for an operation on it.
// Marks: what waits is not inlined: an operation that is ready at once does not wait.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::source::Source;
use crate::event_loop::io::sources::Direction;
use crate::sys::poller::AsSource;
use crate::wait_list::WaitKey;

/// Waits until a [`Source`] is ready in one direction.
///
/// # Cancel safety
///
/// Dropping the future deregisters its waker; no event is lost.
///
/// # Examples
///
/// ```ignore-windows
/// use phaseloop::io::pipe;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let (reader, writer) = pipe()?;
///     writer.try_write(b"x")?;
///     reader.readable().await?;
///     assert_eq!(reader.try_read(&mut [0; 8])?, 1);
///     Ok(())
/// }
/// ```
#[must_use = "futures do nothing unless awaited"]
pub struct Readiness<'a, T: AsSource> {
    source: &'a Source<T>,
    direction: Direction,
    /// The key of the waker in the wait list, while the future waits.
    waiting: Option<WaitKey>,
}

impl<'a, T: AsSource> Readiness<'a, T> {
    pub(super) fn new(source: &'a Source<T>, direction: Direction) -> Self {
        Self {
            source,
            direction,
            waiting: None,
        }
    }

    /// A function of its own, to keep the path of a ready source short.
    #[inline(never)]
    fn wait(&mut self, waker: &Waker) -> Poll<io::Error> {
        let waiters = self.source.state.waiters(self.direction);
        self.waiting = Some(waiters.wait(self.waiting, waker));
        self.source.begin_wait(self.direction)
    }

    #[inline]
    fn stop_waiting(&mut self) {
        let Some(key) = self.waiting.take() else {
            return;
        };
        // An event that has ended the wait updates liveness itself, after its callback.
        if self.source.state.is_awaited(self.direction) {
            self.end_wait(key);
        }
    }

    /// A function of its own, to keep the path of a source that was ready short.
    #[inline(never)]
    fn end_wait(&self, key: WaitKey) {
        let state = &self.source.state;
        if state.waiters(self.direction).stop_waiting(key) {
            state.count_waits(self.source.loop_core());
        }
    }
}

impl<T: AsSource> Future for Readiness<'_, T> {
    type Output = io::Result<()>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.source.may_try(self.direction) {
            self.stop_waiting();
            if self.direction == Direction::Priority {
                self.source.state.clear_ready(Direction::Priority);
            }
            return Poll::Ready(Ok(()));
        }
        self.wait(cx.waker()).map(Err)
    }
}

impl<T: AsSource> Drop for Readiness<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.stop_waiting();
    }
}

/// Calls an operation once a [`Source`] is ready, and again after each attempt that would block.
pub(super) struct WhenReady<'a, T: AsSource, F> {
    readiness: Readiness<'a, T>,
    operation: F,
}

impl<'a, T: AsSource, F> WhenReady<'a, T, F> {
    #[inline]
    pub(super) fn new(source: &'a Source<T>, direction: Direction, operation: F) -> Self {
        Self {
            readiness: Readiness::new(source, direction),
            operation,
        }
    }
}

/// The operation is never pinned.
impl<T: AsSource, F> Unpin for WhenReady<'_, T, F> {}

impl<T: AsSource, F, R> Future for WhenReady<'_, T, F>
where
    F: FnMut(&T) -> io::Result<R>,
{
    type Output = io::Result<R>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<R>> {
        let Self {
            readiness,
            operation,
        } = self.get_mut();
        let (source, direction) = (readiness.source, readiness.direction);
        loop {
            if !source.may_try(direction) {
                return readiness.wait(cx.waker()).map(Err);
            }
            match source.call(operation) {
                Err(error) => source.end_attempt(direction, error)?,
                done => return Poll::Ready(done),
            }
        }
    }
}

impl<T: AsSource> fmt::Debug for Readiness<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readiness")
            .field("direction", &self.direction)
            .field("waiting", &self.waiting.is_some())
            .finish_non_exhaustive()
    }
}
