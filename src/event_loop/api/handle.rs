//! What all handles have in common: flags, the line that created them, and how they close.
//!
//! ```text
//!   new ──> open ── close() ──> closing ── closing phase ──> closed
//!             └────────────── drop: gone at once, no callback ──────┘
//! ```

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};

use slab::Slab;

use super::any_handle::AnyHandle;
use super::loop_handle::LoopHandle;
use crate::error::Error;
use crate::event_loop::core::Core;
use crate::event_loop::phases::callback::CallbackSlot;
use crate::keeper::Keeper;
use crate::site::Site;

/// The flags of one handle, shared by the handle and the loop.
pub(crate) struct Header {
    pub(crate) kind: Keeper,
    site: Site,
    /// The number of the handle in the order of creation, over all kinds.
    id: u64,
    slot: Cell<u32>,
    pub(crate) active: Cell<bool>,
    pub(crate) referenced: Cell<bool>,
    pub(crate) stage: Cell<Stage>,
    /// The state with the handle's callback or waiters, if it has any.
    owner: OnceCell<Weak<dyn Owner>>,
    /// The waiters for the close. They are boxed since most handles never have one.
    on_close: OnceCell<Box<RefCell<VecDeque<OnClose>>>>,
}

/// The state that a handle shares with the loop besides its flags.
pub(crate) trait Owner {
    /// Returns the callback, if the handle has one.
    fn callback(&self) -> Option<&CallbackSlot> {
        None
    }

    /// Returns the data pointers of the wakers that wait on the handle, where they are known.
    fn wakers(&self) -> Vec<*const ()> {
        Vec::new()
    }

    /// Returns whether an event from before the close is still to be delivered.
    fn is_still_due(&self) -> bool {
        false
    }

    /// Stops the handle for good, on its drop and its close.
    fn stop_for_good(&self, core: &Core);

    /// Takes the wakers of a closed handle. The closing phase wakes them, and their futures find
    /// the handle closed.
    fn take_waiters(&self) -> Vec<Waker> {
        Vec::new()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Open,
    Closing,
    Closed,
}

pub(crate) enum OnClose {
    Wake(Waker),
    Call(Box<dyn FnOnce()>),
}

/// The open handles of a loop.
pub(crate) struct Handles {
    list: RefCell<Slab<Rc<Header>>>,
    next_id: Cell<u64>,
}

impl Handles {
    pub(crate) fn new() -> Self {
        Self {
            list: RefCell::new(Slab::new()),
            next_id: Cell::new(0),
        }
    }

    pub(crate) fn open(&self, kind: Keeper, site: Site) -> Rc<Header> {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        let header = Rc::new(Header::new(kind, site, id));
        let slot = self.list.borrow_mut().insert(header.clone());
        header
            .slot
            .set(u32::try_from(slot).expect("fewer than 2^32 handles are open at once"));
        header
    }

    /// Removes a handle from the list.
    pub(crate) fn remove(&self, header: &Header) {
        if header.stage.replace(Stage::Closed) != Stage::Closed {
            self.list.borrow_mut().remove(header.slot.get() as usize);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.borrow().len()
    }

    /// Takes the wakers that wait on any handle.
    pub(crate) fn take_wakers(&self) -> Vec<Waker> {
        let headers = self.headers();
        let owners = headers.iter().filter_map(|header| header.owner());
        owners.flat_map(|owner| owner.take_waiters()).collect()
    }

    /// Stops all handles for good and drops their callbacks, also those of handles that are not
    /// started: a callback may own its handle.
    pub(crate) fn shut_down(&self) {
        let headers: Vec<_> = self.list.borrow().iter().map(|(_, h)| h.clone()).collect();
        for header in headers {
            header.active.set(false);
            if let Some(callback) = header.owner().as_ref().and_then(|owner| owner.callback()) {
                callback.clear();
            }
        }
    }

    /// Returns all handles in the order of their creation.
    pub(crate) fn list(&self) -> Vec<HandleInfo> {
        self.headers().iter().map(|header| header.info()).collect()
    }

    /// Returns the headers of all handles in the order of their creation.
    pub(in crate::event_loop) fn headers(&self) -> Vec<Rc<Header>> {
        let mut headers: Vec<_> = self.list.borrow().iter().map(|(_, h)| h.clone()).collect();
        headers.sort_unstable_by_key(|header| header.id);
        headers
    }
}

impl Header {
    /// Adds a waiter for the close.
    fn tell_of_close(&self, who: OnClose) {
        let on_close = self.on_close.get_or_init(Box::default);
        on_close.borrow_mut().push_back(who);
    }

    /// Returns whether a waiter for the close has this waker.
    fn tells_of_close(&self, waker: &Waker) -> bool {
        let is_known =
            |entry: &OnClose| matches!(entry, OnClose::Wake(known) if known.will_wake(waker));
        self.on_close
            .get()
            .is_some_and(|on_close| on_close.borrow().iter().any(is_known))
    }

    /// Takes the next waiter for the close.
    pub(crate) fn next_to_tell(&self) -> Option<OnClose> {
        self.on_close.get()?.borrow_mut().pop_front()
    }

    /// Returns whether there is a waiter for the close.
    pub(crate) fn has_to_tell(&self) -> bool {
        self.on_close
            .get()
            .is_some_and(|on_close| !on_close.borrow().is_empty())
    }

    pub(in crate::event_loop) fn new(kind: Keeper, site: Site, id: u64) -> Self {
        Self {
            kind,
            site,
            id,
            slot: Cell::new(0),
            active: Cell::new(false),
            referenced: Cell::new(true),
            stage: Cell::new(Stage::Open),
            owner: OnceCell::new(),
            on_close: OnceCell::new(),
        }
    }

    fn owner(&self) -> Option<Rc<dyn Owner>> {
        self.owner.get().and_then(Weak::upgrade)
    }

    /// Returns whether an event from before the close is still to be delivered.
    pub(in crate::event_loop) fn is_still_due(&self) -> bool {
        self.owner().is_some_and(|owner| owner.is_still_due())
    }

    fn stop_for_good(&self, core: &Core) {
        if let Some(owner) = self.owner() {
            owner.stop_for_good(core);
        }
        core.set_active(self, false);
    }

    /// Returns the data pointers of the wakers that wait on the handle.
    pub(in crate::event_loop) fn wakers(&self) -> Vec<*const ()> {
        self.owner().map_or_else(Vec::new, |owner| owner.wakers())
    }

    /// Sets the state with the handle's callback or waiters.
    pub(crate) fn belongs_to(&self, owner: Weak<dyn Owner>) {
        let known = self.owner.set(owner);
        debug_assert!(known.is_ok(), "a handle has one owner");
    }

    /// Returns the line that created the handle.
    pub(crate) fn site(&self) -> Site {
        self.site
    }

    pub(in crate::event_loop) fn info(&self) -> HandleInfo {
        HandleInfo {
            kind: self.kind,
            created_at: self.site,
            active: self.active.get(),
            referenced: self.referenced.get(),
            closing: self.stage.get() != Stage::Open,
        }
    }
}

/// One handle of a loop, as [`LoopHandle::handles`] lists it.
///
/// Prints as `I/O source (src/main.rs:12:24), active`.
///
/// # Examples
///
/// ```
/// use phaseloop::{EventLoop, Keeper, time::Timer};
///
/// # fn main() -> std::io::Result<()> {
/// let event_loop = EventLoop::new()?;
/// let _timer = Timer::new(&event_loop.handle());
/// let info = &event_loop.handle().handles()[0];
/// assert_eq!(info.kind, Keeper::Timer);
/// assert!(!info.active, "it was not started");
/// assert!(info.created_at.file().ends_with(".rs"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandleInfo {
    /// The kind of the handle.
    pub kind: Keeper,
    /// The line that created the handle.
    pub created_at: &'static Location<'static>,
    /// Whether the handle is started.
    pub active: bool,
    /// Whether the handle keeps the loop alive while it is active.
    pub referenced: bool,
    /// Whether the handle was closed.
    pub closing: bool,
}

impl fmt::Display for HandleInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.kind, self.created_at)?;
        f.write_str(match (self.closing, self.active) {
            (true, _) => ", closing",
            (false, true) => ", active",
            (false, false) => ", not active",
        })?;
        f.write_str(if self.referenced { "" } else { ", unref'd" })
    }
}

/// The part that all public handles share: the loop and the header.
#[expect(unnameable_types, reason = "an internal of the sealed trait `Handle`")]
pub struct HandleCore {
    pub(crate) handle: LoopHandle,
    pub(crate) header: Rc<Header>,
    /// `true` for the user's handle, which closes on drop; `false` for the view passed to its
    /// callback.
    is_owner: bool,
}

impl fmt::Debug for HandleCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.header.info().fmt(f)
    }
}

impl HandleCore {
    pub(crate) fn owner(handle: LoopHandle, header: Rc<Header>) -> Self {
        Self {
            handle,
            header,
            is_owner: true,
        }
    }

    /// Creates the view of a handle for its own callback, on the running loop.
    pub(crate) fn view(header: Rc<Header>) -> Self {
        Self {
            handle: LoopHandle::current(),
            header,
            is_owner: false,
        }
    }

    /// Creates a view of a handle.
    pub(in crate::event_loop) fn view_on(handle: LoopHandle, header: Rc<Header>) -> Self {
        Self {
            handle,
            header,
            is_owner: false,
        }
    }

    /// Releases a public handle on its drop: stops it and removes it from the loop.
    pub(crate) fn release(&self) {
        if self.is_owner && self.header.stage.get() != Stage::Closed {
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
            self.tell_waiters();
        }
        Close {
            header: self.header.clone(),
        }
    }

    fn tell_waiters(&self) {
        let waiters = self.header.owner().map(|owner| owner.take_waiters());
        for waker in waiters.into_iter().flatten() {
            if self.header.stage.get() == Stage::Closing {
                self.header.tell_of_close(OnClose::Wake(waker));
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
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut event_loop = EventLoop::new()?;
/// let second = Duration::from_secs(1);
/// let heartbeat = Timer::new(&event_loop.handle());
/// heartbeat.start(second, second, |_| println!("alive"))?;
/// heartbeat.unref();
/// assert!(heartbeat.is_active() && !heartbeat.has_ref());
/// assert!(!event_loop.run(RunMode::Default)?, "it returns at once");
/// # Ok(())
/// # }
/// ```
pub trait Handle: sealed::Sealed {
    /// Returns whether the handle is started.
    fn is_active(&self) -> bool {
        self.handle_core().header.active.get()
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
/// phaseloop::block_on(async {
///     let timer = Timer::new(&LoopHandle::current());
///     let close = timer.close();
///     assert!(timer.is_closing());
///     close.await; // the closing phase of this turn
///     assert!(timer.start(Default::default(), Default::default(), |_| ()).is_err());
/// });
/// ```
#[must_use = "the handle is closed at once; await this, or `drop` it, to see or ignore the report of the closing phase"]
pub struct Close {
    header: Rc<Header>,
}

impl Close {
    /// Calls `callback` in the closing phase, in place of waking the future.
    ///
    /// If the close is already complete, the callback is dropped without a call.
    pub fn then(self, callback: impl FnOnce() + 'static) {
        if self.header.stage.get() == Stage::Closing {
            let call = OnClose::Call(Box::new(callback));
            self.header.tell_of_close(call);
        }
    }
}

impl Future for Close {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.header.stage.get() == Stage::Closed {
            return Poll::Ready(());
        }
        if !self.header.tells_of_close(cx.waker()) {
            self.header.tell_of_close(OnClose::Wake(cx.waker().clone()));
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
