//! Poll handles: call back while a descriptor is ready, level-triggered.
//!
//! ```text
//!   new ──> stopped ── start ──> started ──> called in every poll phase in which the source is ready
//!              ^                    │
//!              └── stop, an error ──┘
//! ```

use std::fmt;
use std::io;
use std::panic::Location;
use std::rc::Rc;

use crate::event_loop::api::handle::{Close, Handle, HandleCore, sealed};
use crate::event_loop::api::loop_handle::LoopHandle;
use crate::event_loop::core::Core;
use crate::event_loop::phases::polls::PollState;
use crate::keeper::Keeper;
use crate::sys::poller::{AsSource, PollEvents};

/// Calls back in the poll phase as long as a descriptor or socket is ready: libuv's `uv_poll_t`,
/// for foreign libraries that do their own I/O. For I/O in async code, [`Source`](super::Source) is
/// simpler and cheaper.
///
/// It is level-triggered: a callback that does not drain the source is called again in the next
/// turn. Stopped, closed or dropped, it is not called any more, not even for what the running poll
/// phase has heard already.
///
/// The source belongs to the handle, and stays open until that is dropped;
/// [`into_inner`](Self::into_inner) gives it back. A source that is not to be closed can be lent:
/// `&'static T`, `Rc<T>` and `BorrowedFd<'static>` are sources, too. Its mode is left alone: make
/// it non-blocking, unless each callback does one operation.
///
/// # Examples
///
/// ```
/// # #[cfg(unix)]
/// # fn main() -> std::io::Result<()> {
/// use std::io::{Read, Write};
/// use std::os::unix::net::UnixStream;
/// use phaseloop::{EventLoop, RunMode, io::{PollEvents, PollHandle}};
///
/// let (ours, mut theirs) = UnixStream::pair()?;
/// let mut event_loop = EventLoop::new()?;
/// let poll = PollHandle::new(&event_loop.handle(), ours)?;
/// poll.start(PollEvents::READABLE, |poll, events| {
///     assert!(events.is_ok_and(|events| events.contains(PollEvents::READABLE)));
///     let mut byte = [0];
///     if poll.get_ref().read(&mut byte).unwrap() == 0 {
///         poll.stop();
///     }
/// })?;
/// theirs.write_all(b"two")?;
/// drop(theirs);
/// assert!(!event_loop.run(RunMode::Default)?);
/// # Ok(())
/// # }
/// # #[cfg(not(unix))]
/// # fn main() {}
/// ```
pub struct PollHandle<T: AsSource + 'static> {
    core: HandleCore,
    state: Rc<PollState>,
    source: Rc<T>,
}

impl<T: AsSource + 'static> PollHandle<T> {
    /// Makes a handle that is not started.
    ///
    /// # Errors
    ///
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) when the loop watches the descriptor
    /// already, [`PermissionDenied`](io::ErrorKind::PermissionDenied) when it cannot be watched (a
    /// regular file), any other OS error of `epoll_ctl`, and the loop's refusal when it is gone.
    #[track_caller]
    pub fn new(handle: &LoopHandle, source: T) -> io::Result<Self> {
        if handle.is_closed() {
            return Err(io::Error::other(crate::error::Error::LOOP_CLOSED));
        }
        handle.core().poller.check(&source)?;
        let core = handle.open(Keeper::Poll, Location::caller());
        let state = PollState::new(core.header.clone(), &source);
        Ok(Self {
            core,
            state,
            source: Rc::new(source),
        })
    }

    /// Calls `callback` whenever one of `events` is ready. A started handle changes what it waits
    /// for, and its callback. No events are a [`stop`](Self::stop).
    ///
    /// The callback gets the handle and what is ready, of what was asked for. A peer that has hung
    /// up, and an error beside urgent data, count as all of it. On another error of the source the
    /// handle is stopped, and the callback gets `EBADF` (as libuv's does): the source itself knows
    /// more. Where the system reports readiness alone, errors are readiness.
    ///
    /// # Errors
    ///
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) when another handle or source of the loop
    /// watches the descriptor, [`Unsupported`](io::ErrorKind::Unsupported) for disconnect and
    /// priority anywhere but on Linux, any other OS error of `epoll_ctl`; the loop's refusal, when
    /// the handle was closed or the loop is gone. The handle is stopped then.
    pub fn start(
        &self,
        events: PollEvents,
        mut callback: impl FnMut(&Self, io::Result<PollEvents>) + 'static,
    ) -> io::Result<()> {
        self.core.check_open().map_err(io::Error::other)?;
        // Weak: the callback lives in what they point to.
        let (state, source) = (Rc::downgrade(&self.state), Rc::downgrade(&self.source));
        let before = self.state.callback.set(Box::new(move || {
            if let (Some(state), Some(source)) = (state.upgrade(), source.upgrade()) {
                let reported = state.take_reported();
                let view = Self {
                    core: HandleCore::view(state.header.clone()),
                    state,
                    source,
                };
                callback(&view, reported);
            }
        }));
        let started = self.loop_core().start_poll(&self.state, events);
        // What the old callback has captured may do anything, also to this handle.
        drop(before);
        started
    }

    /// Starts the handle with the callback of the last [`start`](Self::start), for the same or
    /// other events.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start); when the handle was never started.
    pub fn restart(&self, events: PollEvents) -> io::Result<()> {
        self.core.check_open().map_err(io::Error::other)?;
        if !self.state.callback.is_set() {
            return Err(io::Error::other(crate::error::Error::NEVER_STARTED));
        }
        self.loop_core().start_poll(&self.state, events)
    }

    /// Stops calling. Does nothing when stopped already. The descriptor may be closed from now on.
    pub fn stop(&self) {
        self.loop_core().stop_poll(&self.state);
    }

    /// What the handle is started for; empty if it is stopped.
    #[must_use]
    pub fn events(&self) -> PollEvents {
        self.state.events()
    }

    /// The source itself.
    #[must_use]
    pub fn get_ref(&self) -> &T {
        &self.source
    }

    /// Takes the source out of the loop and gives it back. `None` inside the handle's own callback,
    /// which has it, too.
    #[must_use]
    pub fn into_inner(self) -> Option<T> {
        self.core.release();
        let source = self.source.clone();
        drop(self);
        Rc::into_inner(source)
    }

    /// Stops the handle for good, at once, and has it reported in the closing phase; see [`Close`].
    /// The source stays open until the handle is dropped.
    pub fn close(&self) -> Close {
        self.core.close()
    }

    fn loop_core(&self) -> &Core {
        self.core.handle.core()
    }
}

impl<T: AsSource> Handle for PollHandle<T> {}

impl<T: AsSource> sealed::Sealed for PollHandle<T> {
    fn handle_core(&self) -> &HandleCore {
        &self.core
    }
}

impl<T: AsSource> Drop for PollHandle<T> {
    fn drop(&mut self) {
        self.core.release();
    }
}

impl<T: AsSource + fmt::Debug> fmt::Debug for PollHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PollHandle")
            .field("source", &self.source)
            .field("events", &self.events())
            .field("created_at", &self.created_at())
            .finish_non_exhaustive()
    }
}
