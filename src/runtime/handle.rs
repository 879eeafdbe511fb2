//! What all handles have in common: flags, the line that created them, and how they close.
//!
//! ```text
//!   new ──> open ── close() ──> closing ── closing phase ──> closed
//!             └────────────── drop: gone at once, no callback ──────┘
//! ```

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use super::any_handle::AnyHandle;
use super::loop_handle::LoopHandle;
use crate::error::Error;
use crate::event_loop::core::Core;
use crate::event_loop::ledger::handles::{Header, OnClose, Stage};
use crate::frame::carry_once;
use crate::keeper::Keeper;
use crate::raw::bound::Bound;

/// The kind of a callback for a close, for a tracker.
const CLOSE: &str = "CLOSE";

/// One handle of a loop, as [`LoopHandle::handles`] lists it.
///
/// Prints as `TcpListener 127.0.0.1:7000 (src/main.rs:12:24), active`.
///
/// # Examples
///
/// ```
/// use phaseloop::{EventLoop, Keeper, time::Timer};
///
/// fn main() -> std::io::Result<()> {
///     let event_loop = EventLoop::new()?;
///     let _timer = Timer::new(&event_loop.handle());
///     let info = &event_loop.handle().handles()[0];
///     assert_eq!(info.kind, Keeper::Timer);
///     assert!(!info.active, "it was not started");
///     assert!(info.created_at.file().ends_with(".rs"));
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandleInfo {
    /// The kind of the handle.
    pub kind: Keeper,
    /// The name of the handle: its type, and its addresses, path or number, as in `TcpStream
    /// 127.0.0.1:7000 ← 127.0.0.1:51234` and `child 4711 "cat"`. The text is for people.
    pub name: String,
    /// The line that created the handle.
    pub created_at: &'static Location<'static>,
    /// Whether the handle is started.
    pub active: bool,
    /// Whether the handle keeps the loop alive while it is active.
    pub referenced: bool,
    /// Whether the handle was closed.
    pub closing: bool,
}

impl HandleInfo {
    pub(super) fn of(header: &Header, core: &Core) -> Self {
        Self {
            kind: header.kind,
            name: header.label(core).to_string(),
            created_at: header.site,
            active: header.is_active(),
            referenced: header.referenced.get(),
            closing: header.stage.get() != Stage::Open,
        }
    }
}

impl fmt::Display for HandleInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.created_at)?;
        f.write_str(match (self.closing, self.active) {
            (true, _) => ", closing",
            (false, true) => ", active",
            (false, false) => ", not active",
        })?;
        f.write_str(if self.referenced { "" } else { ", unref'd" })
    }
}

/// The part that all public handles share: the loop and the header.
///
/// Dropping it releases the handle. It is the first field of a handle, so that the handle is
/// stopped before the rest of it is dropped.
#[expect(unnameable_types, reason = "an internal of the sealed trait `Handle`")]
pub struct HandleCore {
    pub(crate) handle: LoopHandle,
    pub(crate) header: Bound<Rc<Header>>,
    /// `true` for the user's handle, which closes on drop; `false` for the view passed to its
    /// callback.
    is_owner: Bound<Cell<bool>>,
}

impl Drop for HandleCore {
    fn drop(&mut self) {
        self.release();
    }
}

impl fmt::Debug for HandleCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        HandleInfo::of(&self.header, self.handle.core()).fmt(f)
    }
}

impl HandleCore {
    pub(crate) fn owner(handle: LoopHandle, header: Rc<Header>) -> Self {
        Self {
            handle,
            header: Bound::new(header),
            is_owner: Bound::new(Cell::new(true)),
        }
    }

    /// Creates the view of a handle for its own callback, on the running loop.
    pub(crate) fn view(header: Rc<Header>) -> Self {
        Self {
            handle: LoopHandle::current(),
            header: Bound::new(header),
            is_owner: Bound::new(Cell::new(false)),
        }
    }

    /// Creates a view of a handle.
    pub(crate) fn view_on(handle: LoopHandle, header: Rc<Header>) -> Self {
        Self {
            handle,
            header: Bound::new(header),
            is_owner: Bound::new(Cell::new(false)),
        }
    }

    /// Releases a public handle, at the latest on its drop: stops it and removes it from the loop.
    pub(crate) fn release(&self) {
        if self.is_owner.replace(false) && self.header.stage.get() != Stage::Closed {
            let core = self.handle.core();
            self.header.stop_for_good(core);
            core.release(&self.header);
        }
    }

    /// Closes the handle: stops it at once and queues it for the closing phase.
    pub(crate) fn close(&self) -> Close {
        if self.header.stage.get() == Stage::Open {
            let core = self.handle.core();
            // The stage is set first: the drop of the callback may run user code that closes the
            // handle again.
            core.begin_close(&self.header);
            self.header.stop_for_good(core);
            self.notify_waiters();
        }
        Close {
            header: self.header.clone(),
        }
    }

    fn notify_waiters(&self) {
        let waiters = self.header.owner().map(|owner| owner.take_waiters());
        for waker in waiters.into_iter().flatten() {
            if self.header.stage.get() == Stage::Closing {
                self.header.report_close(OnClose::Wake(waker));
            } else {
                // A dropped loop has no closing phase.
                waker.wake();
            }
        }
    }

    /// Returns an error if the handle was closed or the loop was dropped.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        if self.header.stage.get() != Stage::Open {
            return Err(Error::HANDLE_CLOSED);
        }
        if self.handle.is_closed() {
            return Err(Error::LOOP_CLOSED);
        }
        Ok(())
    }
}

/// Makes a type a [`Handle`]: `impl_handle!(Timer, |this| &this.core)`. The parameters of a generic
/// type stand in brackets before it.
macro_rules! impl_handle {
    ([$($parameters:tt)*] $type:ty, |$this:ident| $core:expr) => {
        impl<$($parameters)*> $crate::runtime::handle::Handle for $type {}

        impl<$($parameters)*> $crate::runtime::handle::sealed::Sealed for $type {
            fn handle_core(&self) -> &$crate::runtime::handle::HandleCore {
                #[allow(unused_imports, reason = "the core may be that of a field")]
                use $crate::runtime::handle::sealed::Sealed as _;
                let $this = self;
                $core
            }
        }
    };
    ($type:ty, |$this:ident| $core:expr) => {
        $crate::runtime::handle::impl_handle!([] $type, |$this| $core);
    };
}
pub(crate) use impl_handle;

pub(crate) mod sealed {
    #[expect(
        unnameable_types,
        reason = "keeps the trait `Handle` from being implemented elsewhere"
    )]
    pub trait Sealed {
        fn handle_core(&self) -> &super::HandleCore;
    }
}

/// The common interface of timers, hooks, async handles and I/O sources, as of libuv's handles.
///
/// A handle is *active* while it is started, and *referenced* unless [`unref`](Handle::unref) was
/// called. A handle that is both keeps the loop alive. Dropping a handle stops it at once, and its
/// callback is not called again. `close` also stops it at once, and completes in the closing phase.
///
/// # Examples
///
/// A heartbeat that does not keep the program alive:
///
/// ```
/// use std::time::Duration;
/// use phaseloop::{EventLoop, Handle, RunMode, time::Timer};
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let mut event_loop = EventLoop::new()?;
///     let second = Duration::from_secs(1);
///     let heartbeat = Timer::new(&event_loop.handle());
///     heartbeat.start(second, second, |_| println!("alive"))?;
///     heartbeat.unref();
///     assert!(heartbeat.is_active() && !heartbeat.has_ref());
///     assert!(!event_loop.run(RunMode::Default)?, "it returns at once");
///     Ok(())
/// }
/// ```
pub trait Handle: sealed::Sealed {
    /// Returns whether the handle is started.
    fn is_active(&self) -> bool {
        self.handle_core().header.is_active()
    }

    /// Returns whether the handle is referenced: it keeps the loop alive while it is active.
    fn has_ref(&self) -> bool {
        self.handle_core().header.referenced.get()
    }

    /// Makes the handle referenced, which is the default. Idempotent.
    fn ref_(&self) {
        let core = self.handle_core();
        core.handle.core().set_referenced(&core.header, true);
    }

    /// Lets the loop end although the handle is active. The handle still works while the loop runs.
    /// Idempotent.
    fn unref(&self) {
        let core = self.handle_core();
        core.handle.core().set_referenced(&core.header, false);
    }

    /// Returns whether `close` was called.
    fn is_closing(&self) -> bool {
        self.handle_core().header.stage.get() != Stage::Open
    }

    /// Returns the line that created the handle.
    fn created_at(&self) -> &'static Location<'static> {
        self.handle_core().header.site
    }

    /// Returns the loop that the handle belongs to.
    fn event_loop(&self) -> LoopHandle {
        self.handle_core().handle.clone()
    }

    /// Returns a view of the handle, with which other code can inspect and close it.
    fn any(&self) -> AnyHandle {
        let core = self.handle_core();
        AnyHandle::new(core.handle.clone(), core.header.clone())
    }
}

/// A future that completes when the close of a handle does.
///
/// `close` stops the handle for good at once. The future completes in the closing phase: of the
/// same turn if `close` was called in an earlier phase, otherwise of the next turn. Handles closed
/// in one turn complete in reverse order. Until then the loop stays alive and does not sleep.
/// Closing a closed handle has no further effect.
///
/// # Cancel safety
///
/// Dropping the future does not undo the close.
///
/// # Examples
///
/// ```
/// use phaseloop::{Handle, LoopHandle, time::Timer};
///
/// #[phaseloop::main]
/// async fn main() {
///     let timer = Timer::new(&LoopHandle::current());
///     let close = timer.close();
///     assert!(timer.is_closing());
///     close.await; // the closing phase of this turn
///     assert!(timer.start(Default::default(), Default::default(), |_| ()).is_err());
/// }
/// ```
#[must_use = "the handle is closed at once; await this, or `drop` it, to see or ignore the report of the closing phase"]
#[doc(alias = "uv_close")]
pub struct Close {
    header: Rc<Header>,
}

impl Close {
    /// Calls `callback` in the closing phase, in place of waking the future.
    ///
    /// If the close is already complete, the callback is dropped without a call.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{LoopHandle, time::Timer};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let timer = Timer::new(&LoopHandle::current());
    ///     timer.close().then(|| println!("in the closing phase"));
    ///     phaseloop::phase::closing().await;
    /// }
    /// ```
    pub fn then(self, callback: impl FnOnce() + 'static) {
        if self.header.stage.get() == Stage::Closing {
            let call = OnClose::Call(carry_once(CLOSE, Box::new(callback)));
            self.header.report_close(call);
        }
    }
}

impl Future for Close {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let is_closed = || self.header.stage.get() == Stage::Closed;
        if !is_closed() && !self.header.reports_close(cx.waker()) {
            // The clone may run user code, which may drop the loop.
            let waker = cx.waker().clone();
            if !is_closed() {
                self.header.report_close(OnClose::Wake(waker));
            }
        }
        if is_closed() {
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

impl fmt::Debug for Close {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Close")
            .field("stage", &self.header.stage.get())
            .finish()
    }
}
