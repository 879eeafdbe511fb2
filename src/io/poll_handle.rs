//! Poll handles: call back while a descriptor is ready, level-triggered.
//!
//! ```text
//!   new ──> stopped ── start ──> started ──> one call in every poll phase while ready
//!              ^                    │
//!              └── stop, an error ──┘
//! ```

use std::fmt;
use std::io;
use std::panic::Location;
use std::rc::Rc;

use crate::event_loop::core::Core;
use crate::event_loop::io::poll_handles::PollState;
use crate::keeper::Keeper;
use crate::raw::bound::Bound;
use crate::runtime::handle::{Close, Handle, HandleCore, impl_handle};
use crate::runtime::loop_handle::LoopHandle;
use crate::sys::poller::{AsSource, PollEvents};

/// Calls a callback in the poll phase while a descriptor or socket is ready: libuv's `uv_poll_t`,
/// for foreign libraries that do their own I/O. For I/O in async code, [`Source`](super::Source) is
/// simpler and cheaper.
///
/// It is level-triggered: a callback that does not drain the source is called again in the next
/// turn. Once the handle is stopped, closed or dropped, the callback is not called any more, not
/// even for an event that the running poll phase has already received.
///
/// The handle owns the source and closes it when it is dropped; [`into_inner`](Self::into_inner)
/// returns it. To keep ownership, pass a `&'static T`, an `Rc<T>` or a `BorrowedFd<'static>`, which
/// are sources as well. The mode of the source is not changed: set it to non-blocking mode, unless
/// each callback does one operation.
///
/// # Examples
///
/// ```ignore-windows
/// use std::io::{Read, Write};
/// use std::os::unix::net::UnixStream;
/// use phaseloop::{EventLoop, RunMode, io::{PollEvents, PollHandle}};
///
/// fn main() -> std::io::Result<()> {
///     let (ours, mut theirs) = UnixStream::pair()?;
///     let mut event_loop = EventLoop::new()?;
///     let poll = PollHandle::new(&event_loop.handle(), ours)?;
///     poll.start(PollEvents::READABLE, |poll, events| {
///         assert!(events.is_ok_and(|events| events.contains(PollEvents::READABLE)));
///         let mut byte = [0];
///         if poll.get_ref().read(&mut byte).unwrap() == 0 {
///             poll.stop();
///         }
///     })?;
///     theirs.write_all(b"two")?;
///     drop(theirs);
///     assert!(!event_loop.run(RunMode::Default)?);
///     Ok(())
/// }
/// ```
#[doc(alias = "uv_poll_t")]
pub struct PollHandle<T: AsSource + 'static> {
    core: HandleCore,
    state: Bound<Rc<PollState>>,
    source: Bound<Rc<T>>,
}

impl<T: AsSource + 'static> PollHandle<T> {
    /// Creates a stopped handle.
    ///
    /// # Errors
    ///
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) if the loop watches the descriptor already,
    /// [`PermissionDenied`](io::ErrorKind::PermissionDenied) if it cannot be polled (a regular
    /// file), any other OS error of `epoll_ctl`. An error with [`Error`](crate::Error) as its
    /// source if the loop was dropped.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use std::{io::Read, os::unix::net::UnixStream};
    /// use phaseloop::{LoopHandle, io::{PollEvents, PollHandle}};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (ours, theirs) = UnixStream::pair()?;
    ///     let poll = PollHandle::new(&LoopHandle::current(), ours)?;
    ///     poll.start(PollEvents::READABLE, |poll, _events| {
    ///         assert_eq!(poll.get_ref().read(&mut [0; 8]).unwrap(), 0); // EOF
    ///         poll.stop();
    ///     })?;
    ///     drop(theirs);
    ///     while !poll.events().is_empty() {
    ///         phaseloop::task::yield_now().await;
    ///     }
    ///     poll.close().await;
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn new(handle: &LoopHandle, source: T) -> io::Result<Self> {
        if handle.is_closed() {
            return Err(io::Error::other(crate::error::Error::LOOP_CLOSED));
        }
        handle.core().io.poller().check(&source)?;
        let core = handle.open(Keeper::Poll, Location::caller());
        let state = PollState::new(core.header.clone(), &source);
        Ok(Self {
            core,
            state: Bound::new(state),
            source: Bound::new(Rc::new(source)),
        })
    }

    /// Starts to call `callback` whenever one of `events` is ready. On a started handle it replaces
    /// the events and the callback. An empty set is a [`stop`](Self::stop).
    ///
    /// The callback gets the handle, and the requested events that are ready. A hang-up of the
    /// peer, and an error together with urgent data, count as all requested events. On any other
    /// error of the source the handle is stopped and the callback gets `EBADF`, as in libuv; an
    /// operation on the source returns the actual error. Where the platform reports readiness only,
    /// an error counts as readiness.
    ///
    /// # Errors
    ///
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) if another handle or source of the loop
    /// watches the descriptor, [`Unsupported`](io::ErrorKind::Unsupported) for priority on
    /// platforms other than Linux and for disconnect on Windows, any other OS error of `epoll_ctl`
    /// or `kevent`. An error with [`Error`](crate::Error) as its source if the handle was closed or
    /// the loop was dropped. The handle is stopped in each case.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use std::{io::Read, os::unix::net::UnixStream};
    /// use phaseloop::{LoopHandle, io::{PollEvents, PollHandle}};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (ours, theirs) = UnixStream::pair()?;
    ///     let poll = PollHandle::new(&LoopHandle::current(), ours)?;
    ///     poll.start(PollEvents::READABLE, |poll, _events| {
    ///         assert_eq!(poll.get_ref().read(&mut [0; 8]).unwrap(), 0); // EOF
    ///         poll.stop();
    ///     })?;
    ///     drop(theirs);
    ///     while !poll.events().is_empty() {
    ///         phaseloop::task::yield_now().await;
    ///     }
    ///     poll.close().await;
    ///     Ok(())
    /// }
    /// ```
    pub fn start(
        &self,
        events: PollEvents,
        mut callback: impl FnMut(&Self, io::Result<PollEvents>) + 'static,
    ) -> io::Result<()> {
        self.core.check_open().map_err(io::Error::other)?;
        // Weak references: both own the callback, so strong ones would form a cycle.
        let (state, source) = (Rc::downgrade(&self.state), Rc::downgrade(&self.source));
        let before = self.state.callback.set(Box::new(move || {
            if let (Some(state), Some(source)) = (state.upgrade(), source.upgrade()) {
                let reported = state.take_reported();
                let view = Self {
                    core: HandleCore::view(state.header.clone()),
                    state: Bound::new(state),
                    source: Bound::new(source),
                };
                callback(&view, reported);
            }
        }));
        let started = self.loop_core().start_poll(&self.state, events);
        // Dropped last: the drop of the old callback's captures is user code, which may use this
        // handle.
        drop(before);
        started
    }

    /// Starts the handle with the callback of the last [`start`](Self::start), for the same or
    /// other events.
    ///
    /// # Errors
    ///
    /// The errors of [`start`](Self::start), and an error if the handle was never started.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use std::os::unix::net::UnixStream;
    /// use phaseloop::{LoopHandle, io::{PollEvents, PollHandle}};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (ours, _theirs) = UnixStream::pair()?;
    ///     let poll = PollHandle::new(&LoopHandle::current(), ours)?;
    ///     poll.start(PollEvents::READABLE, |_, _| ())?;
    ///     poll.stop();
    ///     assert!(poll.events().is_empty());
    ///     poll.restart(PollEvents::WRITABLE)?; // with the callback that it had
    ///     assert_eq!(poll.events(), PollEvents::WRITABLE);
    ///     let _stream = poll.into_inner().expect("not inside its callback");
    ///     Ok(())
    /// }
    /// ```
    pub fn restart(&self, events: PollEvents) -> io::Result<()> {
        self.core.check_open().map_err(io::Error::other)?;
        if !self.state.callback.is_set() {
            return Err(io::Error::other(crate::error::Error::NEVER_STARTED));
        }
        self.loop_core().start_poll(&self.state, events)
    }

    /// Stops the handle. Stopping a stopped handle does nothing. The descriptor may be closed
    /// afterwards.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use std::{io::Read, os::unix::net::UnixStream};
    /// use phaseloop::{LoopHandle, io::{PollEvents, PollHandle}};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (ours, theirs) = UnixStream::pair()?;
    ///     let poll = PollHandle::new(&LoopHandle::current(), ours)?;
    ///     poll.start(PollEvents::READABLE, |poll, _events| {
    ///         assert_eq!(poll.get_ref().read(&mut [0; 8]).unwrap(), 0); // EOF
    ///         poll.stop();
    ///     })?;
    ///     drop(theirs);
    ///     while !poll.events().is_empty() {
    ///         phaseloop::task::yield_now().await;
    ///     }
    ///     poll.close().await;
    ///     Ok(())
    /// }
    /// ```
    pub fn stop(&self) {
        self.loop_core().stop_poll(&self.state);
    }

    /// Returns the events that the handle is started for; an empty set if it is stopped.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use std::os::unix::net::UnixStream;
    /// use phaseloop::{LoopHandle, io::{PollEvents, PollHandle}};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (ours, _theirs) = UnixStream::pair()?;
    ///     let poll = PollHandle::new(&LoopHandle::current(), ours)?;
    ///     poll.start(PollEvents::READABLE, |_, _| ())?;
    ///     poll.stop();
    ///     assert!(poll.events().is_empty());
    ///     poll.restart(PollEvents::WRITABLE)?; // with the callback that it had
    ///     assert_eq!(poll.events(), PollEvents::WRITABLE);
    ///     let _stream = poll.into_inner().expect("not inside its callback");
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn events(&self) -> PollEvents {
        self.state.events()
    }

    /// Returns the source.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use std::{io::Read, os::unix::net::UnixStream};
    /// use phaseloop::{LoopHandle, io::{PollEvents, PollHandle}};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (ours, theirs) = UnixStream::pair()?;
    ///     let poll = PollHandle::new(&LoopHandle::current(), ours)?;
    ///     poll.start(PollEvents::READABLE, |poll, _events| {
    ///         assert_eq!(poll.get_ref().read(&mut [0; 8]).unwrap(), 0); // EOF
    ///         poll.stop();
    ///     })?;
    ///     drop(theirs);
    ///     while !poll.events().is_empty() {
    ///         phaseloop::task::yield_now().await;
    ///     }
    ///     poll.close().await;
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn get_ref(&self) -> &T {
        &self.source
    }

    /// Deregisters the source and returns it. Inside the handle's own callback, which still borrows
    /// the source, it returns `None`.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use std::os::unix::net::UnixStream;
    /// use phaseloop::{LoopHandle, io::{PollEvents, PollHandle}};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (ours, _theirs) = UnixStream::pair()?;
    ///     let poll = PollHandle::new(&LoopHandle::current(), ours)?;
    ///     poll.start(PollEvents::READABLE, |_, _| ())?;
    ///     poll.stop();
    ///     assert!(poll.events().is_empty());
    ///     poll.restart(PollEvents::WRITABLE)?; // with the callback that it had
    ///     assert_eq!(poll.events(), PollEvents::WRITABLE);
    ///     let _stream = poll.into_inner().expect("not inside its callback");
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    pub fn into_inner(self) -> Option<T> {
        self.core.release();
        let source = self.source.clone();
        drop(self);
        Rc::into_inner(source)
    }

    /// Closes the handle at once: it cannot be started again. The close completes in the closing
    /// phase; see [`Close`]. The source stays open until the handle is dropped.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use std::{io::Read, os::unix::net::UnixStream};
    /// use phaseloop::{LoopHandle, io::{PollEvents, PollHandle}};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let (ours, theirs) = UnixStream::pair()?;
    ///     let poll = PollHandle::new(&LoopHandle::current(), ours)?;
    ///     poll.start(PollEvents::READABLE, |poll, _events| {
    ///         assert_eq!(poll.get_ref().read(&mut [0; 8]).unwrap(), 0); // EOF
    ///         poll.stop();
    ///     })?;
    ///     drop(theirs);
    ///     while !poll.events().is_empty() {
    ///         phaseloop::task::yield_now().await;
    ///     }
    ///     poll.close().await;
    ///     Ok(())
    /// }
    /// ```
    pub fn close(&self) -> Close {
        self.core.close()
    }

    fn loop_core(&self) -> &Core {
        self.core.handle.core()
    }
}

impl_handle!([T: AsSource] PollHandle<T>, |this| &this.core);

impl<T: AsSource + fmt::Debug> fmt::Debug for PollHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PollHandle")
            .field("source", &self.source)
            .field("events", &self.events())
            .field("created_at", &self.created_at())
            .finish_non_exhaustive()
    }
}
