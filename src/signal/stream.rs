//! Signals as a stream.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures::Stream;

use super::SignalKind;
use crate::error::Error;
use crate::event_loop::core::Core;
use crate::event_loop::current;
use crate::event_loop::io::signals::{Listener, label};
use crate::event_loop::ledger::handles::Owner;
use crate::keeper::Keeper;
use crate::label::Label;
use crate::raw::bound::Bound;
use crate::runtime::handle::{Handle, HandleCore, impl_handle};
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;

/// A stream of signals, in the order in which they were caught.
///
/// It listens from its creation until it is dropped. Signals that are caught while no task waits
/// are kept, each once. A waiting task wakes in the poll phase, after its I/O. [The module](super)
/// describes the order.
///
/// # Examples
///
/// After `cargo add rustix --features process`:
///
/// ```
/// use phaseloop::signal::{SignalKind, Signals};
/// use rustix::process::{Signal, getpid, kill_process};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let mut signals = Signals::new([SignalKind::USR1, SignalKind::USR2])?;
///     kill_process(getpid(), Signal::USR2)?;
///     assert_eq!(signals.recv().await, Some(SignalKind::USR2));
///     Ok(())
/// }
/// ```
#[doc(alias = "SignalKind")]
pub struct Signals {
    core: HandleCore,
    queue: Bound<Rc<Queue>>,
}

/// Signals not yet received, and the wakers of waiting tasks.
#[derive(Default)]
struct Queue {
    caught: RefCell<VecDeque<SignalKind>>,
    waker: RefCell<Option<Waker>>,
    /// One listener for each signal.
    listeners: RefCell<Vec<Rc<Listener>>>,
    is_closed: Cell<bool>,
}

impl Queue {
    #[inline]
    fn push(&self, kind: SignalKind) {
        {
            let mut caught = self.caught.borrow_mut();
            if !caught.contains(&kind) {
                caught.push_back(kind);
            }
        }
        let waker = self.waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Owner for Queue {
    #[inline]
    fn label(&self, _: &Core) -> Option<Label> {
        let listeners = self.listeners.borrow();
        Some(label(listeners.iter().filter_map(|one| one.number())))
    }

    fn wakers(&self) -> Vec<*const ()> {
        Vec::from_iter(self.waker.borrow().as_ref().map(Waker::data))
    }

    #[inline]
    fn stop_for_good(&self, core: &Core) {
        self.is_closed.set(true);
        for listener in self.listeners.take() {
            core.stop_signal(&listener);
        }
    }

    fn take_waiters(&self) -> Vec<Waker> {
        Vec::from_iter(self.waker.take())
    }
}

impl Signals {
    /// Listens to signals on the running loop.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a number that is no signal, and for
    /// SIGKILL, SIGSTOP, SIGILL, SIGFPE and SIGSEGV; any other OS error of `sigaction`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use phaseloop::{process, signal::{SignalKind, Signals}};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut signals = Signals::new([SignalKind::TERM, SignalKind::HUP])?;
    ///     process::kill(std::process::id() as i32, SignalKind::HUP)?;
    ///     assert_eq!(signals.recv().await, Some(SignalKind::HUP));
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn new(kinds: impl IntoIterator<Item = SignalKind>) -> io::Result<Self> {
        Self::new_on(&LoopHandle::current(), kinds)
    }

    /// Listens to signals on the given loop.
    ///
    /// # Errors
    ///
    /// The errors of [`new`](Self::new); an error with [`Error`](crate::Error) as its source if the
    /// loop was dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, signal::{SignalKind, Signals}};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let event_loop = EventLoop::new()?;
    ///     let mut signals = Signals::new_on(&event_loop.handle(), [SignalKind::TERM])?;
    ///     assert_eq!(signals.try_recv(), None);
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn new_on(
        handle: &LoopHandle,
        kinds: impl IntoIterator<Item = SignalKind>,
    ) -> io::Result<Self> {
        Self::new_at(handle, kinds, Location::caller())
    }

    /// Listens on behalf of the caller at `site`.
    pub(super) fn new_at(
        handle: &LoopHandle,
        kinds: impl IntoIterator<Item = SignalKind>,
        site: Site,
    ) -> io::Result<Self> {
        if handle.is_closed() {
            return Err(io::Error::other(Error::LOOP_CLOSED));
        }
        let core = handle.open(Keeper::Signal, site);
        let queue = Rc::<Queue>::default();
        core.header.belongs_to(&queue);
        // From here on, dropping the stream stops the listeners that were started.
        let signals = Self {
            core,
            queue: Bound::new(queue),
        };
        for kind in kinds {
            signals.listen(kind)?;
        }
        Ok(signals)
    }

    #[inline]
    fn listen(&self, kind: SignalKind) -> io::Result<()> {
        let core = self.core.handle.core();
        let listener = Listener::new(self.core.header.clone());
        // The reference is weak, since the queue owns the listeners.
        let queue = Rc::downgrade(&self.queue);
        let none = listener.callback.set(Box::new(move || {
            if let Some(queue) = queue.upgrade() {
                queue.push(kind);
            }
        }));
        debug_assert!(none.is_none());
        let started = core.start_signal(&listener, kind.as_raw(), false);
        started.map_err(|error| kind.explain(error))?;
        core.set_active(&self.core.header, true);
        self.queue.listeners.borrow_mut().push(listener);
        Ok(())
    }

    /// Waits for the next signal. `None` once the stream is closed or the loop is dropped.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no signal.
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use phaseloop::{process, signal::{SignalKind, Signals}};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut signals = Signals::new([SignalKind::TERM, SignalKind::HUP])?;
    ///     process::kill(std::process::id() as i32, SignalKind::HUP)?;
    ///     assert_eq!(signals.recv().await, Some(SignalKind::HUP));
    ///     Ok(())
    /// }
    /// ```
    pub async fn recv(&mut self) -> Option<SignalKind> {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Takes a caught signal, if there is one.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, signal::{SignalKind, Signals}};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let event_loop = EventLoop::new()?;
    ///     let mut signals = Signals::new_on(&event_loop.handle(), [SignalKind::TERM])?;
    ///     assert_eq!(signals.try_recv(), None);
    ///     Ok(())
    /// }
    /// ```
    pub fn try_recv(&mut self) -> Option<SignalKind> {
        self.queue.caught.borrow_mut().pop_front()
    }

    /// Polls for the next signal; the function behind [`recv`](Self::recv).
    ///
    /// # Examples
    ///
    /// ```ignore-windows
    /// use std::future::poll_fn;
    /// use phaseloop::{process, signal::{SignalKind, Signals}};
    ///
    /// #[phaseloop::main]
    /// async fn main() -> std::io::Result<()> {
    ///     let mut signals = Signals::new([SignalKind::HUP])?;
    ///     process::kill(std::process::id() as i32, SignalKind::HUP)?;
    ///     assert_eq!(poll_fn(|cx| signals.poll_recv(cx)).await, Some(SignalKind::HUP));
    ///     Ok(())
    /// }
    /// ```
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<SignalKind>> {
        if let Some(kind) = self.queue.caught.borrow_mut().pop_front() {
            return Poll::Ready(Some(kind));
        }
        // The clone may run user code, which may close the handle.
        let waker = cx.waker().clone();
        if self.queue.is_closed.get() || self.core.handle.is_closed() {
            return Poll::Ready(None);
        }
        current::note_waker(&waker);
        let before = self.queue.waker.replace(Some(waker));
        // The waker is dropped outside the borrow, since its drop may run user code.
        drop(before);
        Poll::Pending
    }
}

impl Stream for Signals {
    type Item = SignalKind;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<SignalKind>> {
        self.poll_recv(cx)
    }
}

impl_handle!(Signals, |this| &this.core);

impl fmt::Debug for Signals {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listeners = self.queue.listeners.borrow();
        let kinds = listeners.iter().filter_map(|state| state.number());
        f.debug_struct("Signals")
            .field(
                "kinds",
                &kinds.map(SignalKind::from_raw).collect::<Vec<_>>(),
            )
            .field("created_at", &self.created_at())
            .finish_non_exhaustive()
    }
}
