//! A registered source of I/O.
//!
//! ```text
//!   new ──> not ready ── event, in the poll phase ──> ready ── attempt would block ──> not ready
//!              └── wait: waker kept, loop alive ──> woken, one callback each
//! ```

use std::fmt;
use std::future::Future;
use std::io;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use crate::error::Error;
use crate::event_loop::api::handle::{Close, Handle, HandleCore, Owner, sealed};
use crate::event_loop::api::loop_handle::LoopHandle;
use crate::event_loop::budget;
use crate::event_loop::phases::sources::{Direction, SourceState};
use crate::event_loop::phases::wait_list::WaitKey;
use crate::keeper::Keeper;
use crate::site::Site;
use crate::sys::errno::cancelled;
use crate::sys::poller::{AsSource, NEEDS_REARM, REPORTS_PRIORITY, Registration};

/// A descriptor or socket that the loop watches.
///
/// It is registered once, for both directions, and remembers what is ready: [`readable`](Source::readable) returns at
/// once while the last attempt did not find the opposite. Do the I/O through [`read_with`](Source::read_with) or
/// [`write_with`](Source::write_with): they try, and wait when the system says that it would block. The source must be
/// non-blocking; [`Source::new`] does not make it so.
///
/// Those who wait are woken in the poll phase, a callback each. The source is *active*, and keeps the loop alive unless
/// unref'd, while somebody waits. Dropping it takes it out of the loop, then closes it. While a future waits, a view
/// ([`Handle::any`]) can close it: the future ends with an error, on Unix `ECANCELED`.
///
/// The descriptor is the source's until then. Nothing tells the loop that somebody has closed it behind its back: attempts
/// fail from then on, but who waits does so for ever, and the number may come to stand for another file. It is the same
/// with libuv's handles.
///
/// # A source that stays ready
///
/// One poll of a task does at most 128 operations on its sources, and on all streams, sockets and channels, which are made
/// of sources. After that many, a source counts as not ready until the next poll phase: timers, other connections and the
/// hooks of the loop have their turn, whatever a fast peer sends. Futures that a callback polls by hand have no such limit.
///
/// # Examples
///
/// ```
/// # #[cfg(unix)]
/// # fn main() -> std::io::Result<()> {
/// use std::io::{Read, Write};
/// use std::os::unix::net::UnixStream;
/// use phaseloop::{LoopHandle, io::Source};
///
/// let (ours, mut theirs) = UnixStream::pair()?;
/// ours.set_nonblocking(true)?;
/// phaseloop::block_on(async {
///     let source = Source::new(&LoopHandle::current(), ours)?;
///     theirs.write_all(b"hello")?;
///     let mut buffer = [0; 16];
///     let n = source.read_with(|mut stream| stream.read(&mut buffer)).await?;
///     assert_eq!(&buffer[..n], b"hello");
///     Ok(())
/// })
/// # }
/// # #[cfg(not(unix))]
/// # fn main() {}
/// ```
pub struct Source<T: AsSource> {
    core: HandleCore,
    pub(super) state: Rc<SourceState>,
    /// `None` when the source was closed and the handle left, and on the way out.
    pub(super) registration: Option<Registration<T>>,
    /// A read or write that moves less than this, and than it was asked to, has emptied or filled the stream. 0 where
    /// nothing can be told; see [`with_short_as_drained`](Self::with_short_as_drained).
    pub(super) drained_below: usize,
}

impl<T: AsSource> Source<T> {
    /// Registers `source` with the loop.
    ///
    /// # Errors
    ///
    /// The system's: [`AlreadyExists`](io::ErrorKind::AlreadyExists) when the loop watches the descriptor already,
    /// [`PermissionDenied`](io::ErrorKind::PermissionDenied) when it cannot be watched (a regular file). The source is
    /// dropped then. The loop's own refusal, when it is gone.
    #[track_caller]
    pub fn new(handle: &LoopHandle, source: T) -> io::Result<Self> {
        Self::new_at(handle, source, Location::caller())
    }

    /// The same, made by the line `site`.
    pub(crate) fn new_at(handle: &LoopHandle, source: T, site: Site) -> io::Result<Self> {
        if handle.is_closed() {
            return Err(io::Error::other(Error::LOOP_CLOSED));
        }
        let core = handle.open(Keeper::Io, site);
        let loop_core = handle.core();
        let state = loop_core.sources.insert(core.header.clone());
        match Registration::new(loop_core.poller.clone(), source, state.key) {
            Ok(registration) => {
                state.belongs_to_source(registration.raw());
                Ok(Self {
                    core,
                    state,
                    registration: Some(registration),
                    drained_below: 0,
                })
            }
            Err((_source, error)) => {
                loop_core.sources.remove(&state);
                loop_core.release(&core.header);
                Err(error)
            }
        }
    }

    /// The source itself.
    #[must_use]
    pub fn get_ref(&self) -> &T {
        self.registration().get()
    }

    /// Takes the source out of the loop and gives it back.
    #[must_use]
    pub fn into_inner(mut self) -> T {
        let registration = self.registration.take().expect(CLOSED);
        self.core.release();
        registration.leave()
    }

    /// Closes the source at once and has that reported in the closing phase; see [`Close`].
    pub fn close(mut self) -> Close {
        // No future is left on a source that its owner gives away: there is none to wake.
        drop(self.state.take_waiters());
        let close = self.core.close();
        self.leave();
        close
    }

    /// Waits until the source is readable, at its end, or in error.
    ///
    /// # Errors
    ///
    /// When the system refuses to watch the source any more.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    #[must_use = "futures do nothing unless awaited"]
    pub fn readable(&self) -> Readiness<'_, T> {
        Readiness::new(self, Direction::Read)
    }

    /// Waits until the source is writable or in error; see [`readable`](Self::readable).
    #[must_use = "futures do nothing unless awaited"]
    pub fn writable(&self) -> Readiness<'_, T> {
        Readiness::new(self, Direction::Write)
    }

    /// Waits for urgent data: out-of-band bytes of a TCP stream, or what a device reports so (`POLLPRI`).
    ///
    /// One event ends one wait: it is over for the next that waits, whether somebody waited when it came or not. (One whose
    /// delivery a panic has cut short is delivered again with the next run.) Such a source is readable, too.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) where the loop does not hear of it: everywhere but on Linux.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn priority(&self) -> io::Result<()> {
        self.reported(Direction::Priority).await
    }

    /// Waits until the peer has closed its end, at least for writing (`POLLRDHUP`, `POLLHUP`), whether all that came before
    /// has been read or not. From then on it returns at once.
    ///
    /// # Errors
    ///
    /// As [`priority`](Self::priority).
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn hang_up(&self) -> io::Result<()> {
        self.reported(Direction::HangUp).await
    }

    async fn reported(&self, direction: Direction) -> io::Result<()> {
        if !REPORTS_PRIORITY {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Readiness::new(self, direction).await
    }

    /// Calls `operation` as soon as the source is readable, again whenever it would have blocked.
    ///
    /// # Errors
    ///
    /// Those of `operation`.
    ///
    /// # Cancel safety
    ///
    /// Given up, it has not called `operation`, or that would have blocked.
    pub fn read_with<R>(
        &self,
        operation: impl FnMut(&T) -> io::Result<R>,
    ) -> impl Future<Output = io::Result<R>> {
        self.io_with(Direction::Read, operation)
    }

    /// Calls `operation` as soon as the source is writable; see [`read_with`](Self::read_with).
    ///
    /// # Errors
    ///
    /// Those of `operation`.
    pub fn write_with<R>(
        &self,
        operation: impl FnMut(&T) -> io::Result<R>,
    ) -> impl Future<Output = io::Result<R>> {
        self.io_with(Direction::Write, operation)
    }

    #[inline]
    fn io_with<F>(&self, direction: Direction, operation: F) -> WhenReady<'_, T, F> {
        WhenReady {
            readiness: Readiness::new(self, direction),
            operation,
        }
    }

    /// The poll function of [`readable`](Self::readable), for one caller at a time: it remembers the last waker only.
    ///
    /// # Errors
    ///
    /// When the system refuses to watch the source any more.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_ready(Direction::Read, cx)
    }

    /// The poll function of [`writable`](Self::writable); see [`poll_readable`](Self::poll_readable).
    ///
    /// # Errors
    ///
    /// When the system refuses to watch the source any more.
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_ready(Direction::Write, cx)
    }

    /// The poll function of [`read_with`](Self::read_with); see [`poll_readable`](Self::poll_readable).
    ///
    /// # Errors
    ///
    /// Those of `operation`.
    pub fn poll_read_with<R>(
        &self,
        cx: &mut Context<'_>,
        operation: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.poll_with(Direction::Read, cx, operation)
    }

    /// The poll function of [`write_with`](Self::write_with); see [`poll_readable`](Self::poll_readable).
    ///
    /// # Errors
    ///
    /// Those of `operation`.
    pub fn poll_write_with<R>(
        &self,
        cx: &mut Context<'_>,
        operation: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.poll_with(Direction::Write, cx, operation)
    }

    /// Waits in the slot until `operation` does not block.
    #[inline(always)]
    pub(super) fn poll_with<R>(
        &self,
        direction: Direction,
        cx: &mut Context<'_>,
        mut operation: impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        ready!(self.poll_ready(direction, cx))?;
        match self.call(&mut operation) {
            Ok(value) => Poll::Ready(Ok(value)),
            Err(error) => self.poll_after(error, direction, cx, &mut operation),
        }
    }

    /// Goes on after an error: tries again if it was an interruption, waits if it would have blocked. Apart, to keep the way
    /// of an operation that succeeds short enough to become part of its caller.
    #[cold]
    #[inline(never)]
    fn poll_after<R>(
        &self,
        mut error: io::Error,
        direction: Direction,
        cx: &mut Context<'_>,
        operation: &mut impl FnMut(&T) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        loop {
            match error.kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::WouldBlock => {
                    budget::give_back();
                    self.state.clear_ready(direction);
                    ready!(self.poll_ready(direction, cx))?;
                }
                _ => return Poll::Ready(Err(error)),
            }
            match self.call(operation) {
                Ok(value) => return Poll::Ready(Ok(value)),
                Err(next) => error = next,
            }
        }
    }

    #[inline(always)]
    fn poll_ready(&self, direction: Direction, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.may_try(direction) {
            return Poll::Ready(Ok(()));
        }
        self.state.waiters(direction).wait_in_slot(cx.waker());
        Poll::Ready(Err(ready!(self.begin_wait(direction))))
    }

    /// Whether the source is ready and the running poll may do one more operation, which this takes from its budget.
    #[inline(always)]
    fn may_try(&self, direction: Direction) -> bool {
        self.state.is_ready(direction)
            && (budget::take() || self.core.handle.core().put_off(&self.state, direction))
    }

    /// Takes one operation from the budget of the running poll for something that needs none of the system, such as a
    /// message that has arrived with the last. Waits for the next poll phase when there is none left.
    pub(crate) async fn spend(&self) -> io::Result<()> {
        if budget::take()
            || self
                .core
                .handle
                .core()
                .put_off(&self.state, Direction::Read)
        {
            return Ok(());
        }
        self.readable().await
    }

    /// Somebody waits now: the source is active, and where events come once only they are asked for again.
    #[inline(always)]
    fn begin_wait(&self, direction: Direction) -> Poll<io::Error> {
        if self.state.is_gone() {
            return Poll::Ready(cancelled());
        }
        self.state.count_wait(self.core.handle.core(), direction);
        if !NEEDS_REARM {
            return Poll::Pending;
        }
        let read = self.state.is_awaited(Direction::Read);
        let write = self.state.is_awaited(Direction::Write);
        match self.registration().rearm(read, write) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(error),
        }
    }

    /// `None`: it would have blocked, and the direction counts as not ready from now on.
    #[inline]
    pub(super) fn attempt<R>(
        &self,
        direction: Direction,
        operation: &mut impl FnMut(&T) -> io::Result<R>,
    ) -> Option<io::Result<R>> {
        loop {
            match self.call(operation) {
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock => {
                        self.state.clear_ready(direction);
                        return None;
                    }
                    _ => return Some(Err(error)),
                },
                result => return Some(result),
            }
        }
    }

    /// Calls the operation once.
    #[inline(always)]
    fn call<R>(&self, operation: &mut impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        match &self.registration {
            Some(registration) => operation(registration.get()),
            None => Err(io::Error::new(
                io::ErrorKind::BrokenPipe,
                "this end of the stream was closed",
            )),
        }
    }

    fn registration(&self) -> &Registration<T> {
        self.registration.as_ref().expect(CLOSED)
    }

    /// Brings the loop's books in line with who waits.
    pub(super) fn count_waits(&self) {
        self.state.count_waits(self.core.handle.core());
    }

    /// Takes the source out of the loop and closes it; the handle is left.
    pub(super) fn end(&mut self) {
        self.state.shut(self.core.handle.core());
        self.leave();
    }

    /// Drops the source, which is out of the poller.
    fn leave(&mut self) {
        drop(self.registration.take().map(Registration::leave));
    }
}

/// Only a stream that was closed while its handle is left is without its descriptor.
const CLOSED: &str =
    "the stream was closed through `AsyncWrite` and has no descriptor any more: take it before";

impl<T: AsSource> Handle for Source<T> {}

impl<T: AsSource> sealed::Sealed for Source<T> {
    fn handle_core(&self) -> &HandleCore {
        &self.core
    }
}

impl<T: AsSource> Drop for Source<T> {
    fn drop(&mut self) {
        self.core.release();
        self.leave();
    }
}

impl<T: AsSource + fmt::Debug> fmt::Debug for Source<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("source", &self.registration.as_ref().map(Registration::get))
            .field("active", &self.is_active())
            .field("created_at", &self.created_at())
            .finish_non_exhaustive()
    }
}

/// Waits until a [`Source`] is ready in one direction.
///
/// # Cancel safety
///
/// Dropping it takes its waker out of the source.
#[must_use = "futures do nothing unless awaited"]
pub struct Readiness<'a, T: AsSource> {
    source: &'a Source<T>,
    direction: Direction,
    /// The key of the waiter, while it waits.
    waiting: Option<WaitKey>,
}

impl<'a, T: AsSource> Readiness<'a, T> {
    fn new(source: &'a Source<T>, direction: Direction) -> Self {
        Self {
            source,
            direction,
            waiting: None,
        }
    }

    /// Apart, to keep the way of a source that is ready short.
    #[inline(never)]
    fn wait(&mut self, waker: &Waker) -> Poll<io::Result<()>> {
        let waiters = self.source.state.waiters(self.direction);
        self.waiting = Some(waiters.wait(self.waiting, waker));
        Poll::Ready(Err(ready!(self.source.begin_wait(self.direction))))
    }

    #[inline]
    fn stop_waiting(&mut self) {
        if let Some(key) = self.waiting.take() {
            self.source.state.waiters(self.direction).stop_waiting(key);
            self.source.count_waits();
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
        self.wait(cx.waker())
    }
}

impl<T: AsSource> Drop for Readiness<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.stop_waiting();
    }
}

/// Calls an operation as soon as a [`Source`] is ready, again whenever it would have blocked.
struct WhenReady<'a, T: AsSource, F> {
    readiness: Readiness<'a, T>,
    operation: F,
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
        let this = self.get_mut();
        let (source, direction) = (this.readiness.source, this.readiness.direction);
        loop {
            if !source.may_try(direction) {
                ready!(this.readiness.wait(cx.waker()))?;
            }
            if let Some(result) = source.attempt(direction, &mut this.operation) {
                return Poll::Ready(result);
            }
            budget::give_back();
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
