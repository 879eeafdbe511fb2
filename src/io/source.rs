//! A registered source of I/O.
//!
//! ```text
//!   new ──> not ready ── event, in the poll phase ──> ready ── attempt would block ──> not ready
//!              └── wait: waker kept, loop alive ──> woken, one callback each
//! ```

mod attempts;
mod polls;

use std::fmt;
use std::future::Future;
use std::io;
use std::panic::Location;
use std::rc::Rc;

use super::when_ready::{Readiness, WhenReady};
use crate::error::Error;
use crate::event_loop::core::Core;
use crate::event_loop::io::sources::{Direction, SourceState};
use crate::event_loop::ledger::handles::Owner;
use crate::keeper::Keeper;
#[cfg(feature = "net")]
use crate::label::Role;
use crate::raw::bound::Bound;
use crate::runtime::handle::{Close, Handle, HandleCore, impl_handle};
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;
use crate::sys::poller::{AsSource, Interest, REPORTS_HANG_UP, REPORTS_PRIORITY, Registration};

/// A descriptor or socket that the loop watches.
///
/// It is registered once, for both directions, and remembers its readiness:
/// [`readable`](Source::readable) returns at once until an attempt would block. Do the I/O through
/// [`read_with`](Source::read_with) or [`write_with`](Source::write_with), which attempt the
/// operation and wait if it would block. The descriptor must be in non-blocking mode;
/// [`Source::new`] does not set it.
///
/// Waiting tasks are woken in the poll phase, one callback each. While a task waits, the source is
/// *active* and keeps the loop alive, unless it is unref'd. Dropping the source deregisters it,
/// then closes it. A view ([`Handle::any`]) can close it while a future waits: the future completes
/// with an error, `ECANCELED` on Unix.
///
/// The source owns the descriptor until then. If other code closes it, the loop gets no event:
/// attempts fail, waiting tasks wait for ever, and the kernel may reuse the number for another
/// file. libuv has the same rule.
///
/// # A source that stays ready
///
/// One poll of a task does at most 128 operations on sources, streams, sockets and channels
/// together. After that, a source counts as not ready until the next poll phase, so that a fast
/// peer cannot starve timers, other connections and hooks. Futures that a callback polls itself
/// have no such limit.
///
/// # Examples
///
/// ```ignore-windows
/// use std::io::{Read, Write};
/// use std::os::unix::net::UnixStream;
/// use phaseloop::{LoopHandle, io::Source};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let (ours, mut theirs) = UnixStream::pair()?;
///     ours.set_nonblocking(true)?;
///     let source = Source::new(&LoopHandle::current(), ours)?;
///     theirs.write_all(b"hello")?;
///     let mut buffer = [0; 16];
///     let n = source.read_with(|mut stream| stream.read(&mut buffer)).await?;
///     assert_eq!(&buffer[..n], b"hello");
///     Ok(())
/// }
/// ```
#[doc(alias = "AsyncFd")]
pub struct Source<T: AsSource> {
    core: HandleCore,
    pub(super) state: Bound<Rc<SourceState>>,
    /// `None` once the source is closed: through `AsyncWrite`, which keeps the handle, or on drop.
    pub(super) registration: Option<Registration<T>>,
}

/// What a source keeps when it moves to another loop.
#[cfg(feature = "net")]
pub(crate) struct Moving {
    pub(crate) site: Site,
    role: Role,
    is_referenced: bool,
    short_is_drained: bool,
}

#[cfg(feature = "net")]
impl Moving {
    /// Describes a socket that was never registered.
    pub(crate) fn unregistered(role: Role, is_tcp: bool, site: Site) -> Self {
        Self {
            site,
            role,
            is_referenced: true,
            short_is_drained: is_tcp,
        }
    }
}

impl<T: AsSource> Source<T> {
    /// Notes that this source and another one are the ends of a pair.
    #[cfg(all(unix, feature = "net"))]
    pub(crate) fn pair_with(&self, other: &Self) {
        self.loop_core().waits.note_pair(&self.state, &other.state);
    }

    /// Registers `source` with the loop.
    ///
    /// # Errors
    ///
    /// Any OS error of `epoll_ctl`: [`AlreadyExists`](io::ErrorKind::AlreadyExists) if the loop
    /// watches the descriptor already, [`PermissionDenied`](io::ErrorKind::PermissionDenied) if it
    /// cannot be polled (a regular file). An error with [`Error`] as its source if the loop was
    /// dropped. The source is dropped in each case.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use std::os::unix::net::UnixStream;
    /// use phaseloop::{LoopHandle, io::Source};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (ours, _theirs) = UnixStream::pair()?;
    ///     ours.set_nonblocking(true)?;
    ///     let source = Source::new(&LoopHandle::current(), ours)?;
    ///     assert!(source.get_ref().peer_addr()?.is_unnamed());
    ///     source.close().await;
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn new(handle: &LoopHandle, source: T) -> io::Result<Self> {
        Self::new_at(handle, source, Interest::Both, Location::caller())
    }

    /// Registers `source` on behalf of the caller at `site`.
    pub(crate) fn new_at(
        handle: &LoopHandle,
        source: T,
        interest: Interest,
        site: Site,
    ) -> io::Result<Self> {
        if handle.is_closed() {
            return Err(io::Error::other(Error::LOOP_CLOSED));
        }
        let core = handle.open(Keeper::Io, site);
        let loop_core = handle.core();
        let is_paused = loop_core.executor.clock.is_paused();
        let state = loop_core.io.add_source(core.header.clone(), is_paused);
        match Registration::new(loop_core.io.poller().clone(), source, state.key, interest) {
            Ok(registration) => {
                state.belongs_to_source(registration.raw(), interest);
                Ok(Self {
                    core,
                    state: Bound::new(state),
                    registration: Some(registration),
                })
            }
            Err((_source, error)) => {
                loop_core.io.remove_source(&state);
                Err(error)
            }
        }
    }

    /// Creates a source that is in memory: its events come from the network of the loop.
    #[cfg(feature = "test-util")]
    pub(crate) fn in_memory(handle: &LoopHandle, source: T, site: Site) -> io::Result<Self> {
        if handle.is_closed() {
            return Err(io::Error::other(Error::LOOP_CLOSED));
        }
        let core = handle.open(Keeper::Io, site);
        let loop_core = handle.core();
        let is_paused = loop_core.executor.clock.is_paused();
        let state = loop_core.io.add_source(core.header.clone(), is_paused);
        // No poller knows a source in memory.
        state.header.belongs_to(&state);
        Ok(Self {
            core,
            registration: Some(Registration::in_memory(
                loop_core.io.poller().clone(),
                source,
            )),
            state: Bound::new(state),
        })
    }

    /// Returns the key of the events of this source.
    #[cfg(feature = "test-util")]
    pub(crate) fn key(&self) -> usize {
        self.state.key
    }

    /// Returns the registered value.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use std::os::unix::net::UnixStream;
    /// use phaseloop::{LoopHandle, io::Source};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (ours, _theirs) = UnixStream::pair()?;
    ///     ours.set_nonblocking(true)?;
    ///     let source = Source::new(&LoopHandle::current(), ours)?;
    ///     assert!(source.get_ref().peer_addr()?.is_unnamed());
    ///     source.close().await;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn get_ref(&self) -> &T {
        self.registration().get()
    }

    /// Deregisters the source and returns it.
    #[must_use]
    #[expect(
        clippy::missing_panics_doc,
        reason = "only what consumes the source takes the registration"
    )]
    pub fn into_inner(mut self) -> T {
        let registration = self.registration.take().expect(CLOSED);
        self.core.release();
        registration.leave()
    }

    /// Deregisters the source, so that it can move to another loop.
    #[cfg(feature = "net")]
    pub(crate) fn detach(self) -> (T, Moving) {
        let moving = Moving {
            site: self.created_at(),
            role: self.state.role(),
            is_referenced: self.has_ref(),
            short_is_drained: self.state.is_short_drained(),
        };
        (self.into_inner(), moving)
    }

    /// Makes the source, which is new, the one that was detached.
    #[cfg(feature = "net")]
    pub(crate) fn arrived(self, moving: Moving) -> Self {
        self.state.set_role(self.loop_core(), moving.role);
        self.state.set_short_as_drained(moving.short_is_drained);
        if !moving.is_referenced {
            self.unref();
        }
        self
    }

    /// Closes the source at once. The close completes in the closing phase; see [`Close`].
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use std::os::unix::net::UnixStream;
    /// use phaseloop::{LoopHandle, io::Source};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (ours, _theirs) = UnixStream::pair()?;
    ///     ours.set_nonblocking(true)?;
    ///     let source = Source::new(&LoopHandle::current(), ours)?;
    ///     assert!(source.get_ref().peer_addr()?.is_unnamed());
    ///     source.close().await;
    ///     Ok(())
    /// }
    /// ```
    pub fn close(mut self) -> Close {
        // `self` is owned, so no future borrows it any more: the remaining wakers have no waiter.
        drop(self.state.take_waiters());
        let close = self.core.close();
        self.leave();
        close
    }

    /// Waits until the source is readable: data, EOF or an error.
    ///
    /// # Errors
    ///
    /// Any OS error of registering for the next event, on platforms that need it. `ECANCELED` if
    /// the source was closed through a view.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future deregisters its waker; no data and no event is lost.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use std::{io::{Read, Write}, os::unix::net::UnixStream};
    /// use phaseloop::{LoopHandle, io::Source};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (ours, theirs) = UnixStream::pair()?;
    ///     let open = |stream: UnixStream| {
    ///         stream.set_nonblocking(true)?;
    ///         Source::new(&LoopHandle::current(), stream)
    ///     };
    ///     let (ours, theirs) = (open(ours)?, open(theirs)?);
    ///     ours.writable().await?;
    ///     ours.write_with(|mut stream| stream.write(b"hello")).await?;
    ///     theirs.readable().await?;
    ///     let length = theirs.read_with(|mut stream| stream.read(&mut [0; 16])).await?;
    ///     assert_eq!(length, 5);
    ///     Ok(())
    /// }
    /// ```
    #[must_use = "futures do nothing unless awaited"]
    pub fn readable(&self) -> Readiness<'_, T> {
        Readiness::new(self, Direction::Read)
    }

    /// Waits until the source is writable, or has an error; see [`readable`](Self::readable).
    ///
    /// # Errors
    ///
    /// Any OS error of registering for the next event, on platforms that need it. `ECANCELED` if
    /// the source was closed through a view.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future deregisters its waker; nothing was written.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use std::{io::{Read, Write}, os::unix::net::UnixStream};
    /// use phaseloop::{LoopHandle, io::Source};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (ours, theirs) = UnixStream::pair()?;
    ///     let open = |stream: UnixStream| {
    ///         stream.set_nonblocking(true)?;
    ///         Source::new(&LoopHandle::current(), stream)
    ///     };
    ///     let (ours, theirs) = (open(ours)?, open(theirs)?);
    ///     ours.writable().await?;
    ///     ours.write_with(|mut stream| stream.write(b"hello")).await?;
    ///     theirs.readable().await?;
    ///     let length = theirs.read_with(|mut stream| stream.read(&mut [0; 16])).await?;
    ///     assert_eq!(length, 5);
    ///     Ok(())
    /// }
    /// ```
    #[must_use = "futures do nothing unless awaited"]
    pub fn writable(&self) -> Readiness<'_, T> {
        Readiness::new(self, Direction::Write)
    }

    /// Waits for urgent data (`POLLPRI`): out-of-band bytes of a TCP stream, or an event of a
    /// device.
    ///
    /// One event completes one wait. An event that comes while no task waits completes the next
    /// wait. If a panic interrupts the delivery, the next run delivers the event again. A source
    /// with urgent data is also readable.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) on platforms other than Linux.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future deregisters its waker; no data and no event is lost.
    pub async fn priority(&self) -> io::Result<()> {
        self.reported(Direction::Priority, REPORTS_PRIORITY).await
    }

    /// Waits until the peer has closed its end, at least for writing (`POLLRDHUP`, `POLLHUP`), even
    /// if earlier data is still unread. From then on it returns at once.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) on Windows.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future deregisters its waker; no data and no event is lost.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use std::os::unix::net::UnixStream;
    /// use phaseloop::{LoopHandle, io::Source};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (ours, theirs) = UnixStream::pair()?;
    ///     ours.set_nonblocking(true)?;
    ///     let source = Source::new(&LoopHandle::current(), ours)?;
    ///     drop(theirs);
    ///     source.hang_up().await?; // without a read
    ///     Ok(())
    /// }
    /// ```
    pub async fn hang_up(&self) -> io::Result<()> {
        self.reported(Direction::HangUp, REPORTS_HANG_UP).await
    }

    async fn reported(&self, direction: Direction, is_supported: bool) -> io::Result<()> {
        if !is_supported {
            return Err(io::ErrorKind::Unsupported.into());
        }
        Readiness::new(self, direction).await
    }

    /// Calls `operation` once the source is readable, and again after each attempt that would
    /// block.
    ///
    /// # Errors
    ///
    /// The errors of `operation`, other than `WouldBlock` and `Interrupted`.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped before it completes has had no effect: `operation` was not called,
    /// or returned `WouldBlock`.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use std::{io::{Read, Write}, os::unix::net::UnixStream};
    /// use phaseloop::{LoopHandle, io::Source};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (ours, theirs) = UnixStream::pair()?;
    ///     let open = |stream: UnixStream| {
    ///         stream.set_nonblocking(true)?;
    ///         Source::new(&LoopHandle::current(), stream)
    ///     };
    ///     let (ours, theirs) = (open(ours)?, open(theirs)?);
    ///     ours.writable().await?;
    ///     ours.write_with(|mut stream| stream.write(b"hello")).await?;
    ///     theirs.readable().await?;
    ///     let length = theirs.read_with(|mut stream| stream.read(&mut [0; 16])).await?;
    ///     assert_eq!(length, 5);
    ///     Ok(())
    /// }
    /// ```
    pub fn read_with<R>(
        &self,
        operation: impl FnMut(&T) -> io::Result<R>,
    ) -> impl Future<Output = io::Result<R>> {
        WhenReady::new(self, Direction::Read, operation)
    }

    /// Calls `operation` once the source is writable, and again after each attempt that would
    /// block.
    ///
    /// # Errors
    ///
    /// The errors of `operation`, other than `WouldBlock` and `Interrupted`.
    ///
    /// # Cancel safety
    ///
    /// As [`read_with`](Self::read_with).
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use std::{io::{Read, Write}, os::unix::net::UnixStream};
    /// use phaseloop::{LoopHandle, io::Source};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (ours, theirs) = UnixStream::pair()?;
    ///     let open = |stream: UnixStream| {
    ///         stream.set_nonblocking(true)?;
    ///         Source::new(&LoopHandle::current(), stream)
    ///     };
    ///     let (ours, theirs) = (open(ours)?, open(theirs)?);
    ///     ours.writable().await?;
    ///     ours.write_with(|mut stream| stream.write(b"hello")).await?;
    ///     theirs.readable().await?;
    ///     let length = theirs.read_with(|mut stream| stream.read(&mut [0; 16])).await?;
    ///     assert_eq!(length, 5);
    ///     Ok(())
    /// }
    /// ```
    pub fn write_with<R>(
        &self,
        operation: impl FnMut(&T) -> io::Result<R>,
    ) -> impl Future<Output = io::Result<R>> {
        WhenReady::new(self, Direction::Write, operation)
    }

    /// Returns the loop.
    #[inline]
    pub(super) fn loop_core(&self) -> &Core {
        self.core.handle.core()
    }

    fn registration(&self) -> &Registration<T> {
        self.registration.as_ref().expect(CLOSED)
    }

    /// Updates the loop's ref count after a change of the waiters.
    pub(super) fn count_waits(&self) {
        self.state.count_waits(self.core.handle.core());
    }

    /// Deregisters the source and closes it. The handle stays.
    pub(super) fn end(&mut self) {
        self.state.stop_for_good(self.core.handle.core());
        self.leave();
    }

    /// Drops the source, which is deregistered already.
    fn leave(&mut self) {
        drop(self.registration.take().map(Registration::leave));
    }
}

/// The panic message for a stream without a descriptor: it was closed and its handle is still in
/// use.
const CLOSED: &str =
    "the stream was closed through `AsyncWrite` and has no descriptor any more: take it before";

impl_handle!([T: AsSource] Source<T>, |this| &this.core);

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
