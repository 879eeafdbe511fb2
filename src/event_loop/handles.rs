//! What all handles have in common: flags, the place that made them, and how they close.
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
use super::callback::CallbackSlot;
use super::core::Core;
use super::handle::LoopHandle;
use crate::error::Error;
use crate::kinds::{Kind, Site};

/// The flags of one handle, shared between the handle and the loop.
pub(crate) struct Header {
    pub(crate) kind: Kind,
    site: Site,
    /// Order of creation, over all kinds.
    id: u64,
    slot: Cell<u32>,
    pub(crate) active: Cell<bool>,
    pub(crate) referenced: Cell<bool>,
    pub(crate) stage: Cell<Stage>,
    /// What has the handle's callback, or those who wait for it, if there are any.
    owner: OnceCell<Weak<dyn Owner>>,
    /// Who wants to know of the close. Boxed: of many handles nobody ever does.
    on_close: OnceCell<Box<RefCell<VecDeque<OnClose>>>>,
}

/// What a handle and the loop share beside its flags.
pub(crate) trait Owner {
    /// What the loop calls.
    fn callback(&self) -> Option<&CallbackSlot> {
        None
    }

    /// What the wakers of those who wait point to, where it knows them.
    fn wakers(&self) -> Vec<*const ()> {
        Vec::new()
    }

    /// Whether something that came for it before the close is still on its way.
    fn is_still_due(&self) -> bool {
        false
    }

    /// Stops the handle for good. Its drop does, and its close.
    fn shut(&self, core: &Core);

    /// The handle was closed. Takes those out who wait for it: the closing phase wakes them, and they find it closed.
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

    pub(crate) fn open(&self, kind: Kind, site: Site) -> Rc<Header> {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        let header = Rc::new(Header::new(kind, site, id));
        let slot = self.list.borrow_mut().insert(header.clone());
        header
            .slot
            .set(u32::try_from(slot).expect("fewer than 2^32 handles are open at once"));
        header
    }

    /// Takes the handle off the list; it is over.
    pub(crate) fn remove(&self, header: &Header) {
        if header.stage.replace(Stage::Closed) != Stage::Closed {
            self.list.borrow_mut().remove(header.slot.get() as usize);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.list.borrow().len()
    }

    /// Takes out the wakers of all that waits for a handle.
    pub(crate) fn take_wakers(&self) -> Vec<Waker> {
        let headers = self.headers();
        let owners = headers.iter().filter_map(|header| header.owner());
        owners.flat_map(|owner| owner.take_waiters()).collect()
    }

    /// Stops all handles for good and drops their callbacks, also of those that are not started: a callback may own its
    /// handle.
    pub(crate) fn shut_down(&self) {
        let headers: Vec<_> = self.list.borrow().iter().map(|(_, h)| h.clone()).collect();
        for header in headers {
            header.active.set(false);
            if let Some(callback) = header.owner().as_ref().and_then(|owner| owner.callback()) {
                callback.clear();
            }
        }
    }

    /// All handles in the order of their creation.
    pub(crate) fn list(&self) -> Vec<HandleInfo> {
        self.headers().iter().map(|header| header.info()).collect()
    }

    /// The same as the loop sees them.
    pub(super) fn headers(&self) -> Vec<Rc<Header>> {
        let mut headers: Vec<_> = self.list.borrow().iter().map(|(_, h)| h.clone()).collect();
        headers.sort_unstable_by_key(|header| header.id);
        headers
    }
}

impl Header {
    /// Adds somebody who wants to know of the close.
    fn tell_of_close(&self, who: OnClose) {
        let on_close = self.on_close.get_or_init(Box::default);
        on_close.borrow_mut().push_back(who);
    }

    /// Whether `waker` is among those who want to know.
    fn tells_of_close(&self, waker: &Waker) -> bool {
        let is_known =
            |entry: &OnClose| matches!(entry, OnClose::Wake(known) if known.will_wake(waker));
        self.on_close
            .get()
            .is_some_and(|on_close| on_close.borrow().iter().any(is_known))
    }

    /// Takes the next who wants to know of the close.
    pub(crate) fn next_to_tell(&self) -> Option<OnClose> {
        self.on_close.get()?.borrow_mut().pop_front()
    }

    /// Whether there is one.
    pub(crate) fn has_to_tell(&self) -> bool {
        self.on_close
            .get()
            .is_some_and(|on_close| !on_close.borrow().is_empty())
    }

    /// The flags of something that counts as a handle and is on no list: it has no owner who could close it.
    #[cfg(feature = "node")]
    pub(crate) fn unlisted(kind: Kind, site: Site) -> Rc<Self> {
        Rc::new(Self::new(kind, site, u64::MAX))
    }

    fn new(kind: Kind, site: Site, id: u64) -> Self {
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

    /// Whether something that came before the close is still on its way to it.
    pub(super) fn is_still_due(&self) -> bool {
        self.owner().is_some_and(|owner| owner.is_still_due())
    }

    fn shut(&self, core: &Core) {
        if let Some(owner) = self.owner() {
            owner.shut(core);
        }
        core.set_active(self, false);
    }

    /// What the wakers of those who wait point to.
    pub(super) fn wakers(&self) -> Vec<*const ()> {
        self.owner().map_or_else(Vec::new, |owner| owner.wakers())
    }

    /// Says where the handle's callback is, or who waits for it.
    pub(crate) fn belongs_to(&self, owner: Weak<dyn Owner>) {
        let known = self.owner.set(owner);
        debug_assert!(known.is_ok(), "a handle has one owner");
    }

    /// The line that made the handle.
    pub(crate) fn site(&self) -> Site {
        self.site
    }

    pub(super) fn info(&self) -> HandleInfo {
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
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandleInfo {
    /// What it is.
    pub kind: Kind,
    /// The line that made it.
    pub created_at: &'static Location<'static>,
    /// Whether it is started.
    pub active: bool,
    /// Whether it counts for keeping the loop alive while it is active.
    pub referenced: bool,
    /// Whether it was closed.
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

/// The way from a public handle to what all handles share.
#[expect(unnameable_types, reason = "an internal of the sealed trait `Handle`")]
pub struct HandleCore {
    pub(crate) handle: LoopHandle,
    pub(crate) header: Rc<Header>,
    /// Whether the drop of this one ends the handle; not so for the one a callback is given to look at.
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

    /// The handle as its own callback sees it, on the running loop.
    pub(crate) fn view(header: Rc<Header>) -> Self {
        Self {
            handle: LoopHandle::current(),
            header,
            is_owner: false,
        }
    }

    /// A handle as others see it.
    pub(super) fn view_on(handle: LoopHandle, header: Rc<Header>) -> Self {
        Self {
            handle,
            header,
            is_owner: false,
        }
    }

    /// What the drop of a public handle does: it is stopped, and off the loop's books.
    pub(crate) fn release(&self) {
        if self.is_owner && self.header.stage.get() != Stage::Closed {
            let core = self.handle.core();
            self.header.shut(core);
            core.release(&self.header);
        }
    }

    /// Ends the handle: it is stopped at once, the closing phase reports it.
    pub(crate) fn close(&self) -> Close {
        if self.header.stage.get() == Stage::Open {
            let core = self.handle.core();
            // First: what the callback has captured may close the handle once more when it is dropped.
            core.begin_close(&self.header);
            self.header.shut(core);
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
                // The loop is gone, and will report nothing.
                waker.wake();
            }
        }
    }

    /// Why the handle cannot be started, if it cannot.
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

/// What timers, hooks, async handles and I/O sources have in common, as libuv's handles do.
///
/// A handle is *active* while it is started, and *referenced* unless [`unref`](Handle::unref) was called.
/// The loop stays alive as long as a handle is both. Dropping a handle stops it at once, and nothing is called
/// any more. Its `close` is for those who want to see it end in the closing phase.
pub trait Handle: sealed::Sealed {
    /// Whether the handle is started.
    fn is_active(&self) -> bool {
        self.handle_core().header.active.get()
    }

    /// Whether the handle counts for keeping the loop alive.
    fn has_ref(&self) -> bool {
        self.handle_core().header.referenced.get()
    }

    /// Makes the handle count for keeping the loop alive; it does from the start. Idempotent.
    fn ref_(&self) {
        let core = self.handle_core();
        core.handle.core().set_referenced(&core.header, true);
    }

    /// Lets the loop end although the handle is active. It still works while the loop runs. Idempotent.
    fn unref(&self) {
        let core = self.handle_core();
        core.handle.core().set_referenced(&core.header, false);
    }

    /// Whether `close` was called.
    fn is_closing(&self) -> bool {
        self.handle_core().header.stage.get() != Stage::Open
    }

    /// The line that made the handle.
    fn created_at(&self) -> &'static Location<'static> {
        self.handle_core().header.site
    }

    /// The loop the handle belongs to.
    fn event_loop(&self) -> LoopHandle {
        self.handle_core().handle.clone()
    }

    /// A view of the handle that can be kept apart from it, to look at it or to close it from elsewhere.
    fn any(&self) -> AnyHandle {
        let core = self.handle_core();
        AnyHandle::new(core.handle.clone(), core.header.clone())
    }
}

/// A handle that is being closed.
///
/// The handle was stopped for good when `close` was called. The future is woken in the closing phase: of the same turn
/// when called in an earlier phase of it, else of the next. Handles closed in one turn are reported in reverse order.
/// Until then the loop stays alive and does not sleep. Closing twice is the same as once.
///
/// # Cancel safety
///
/// Dropping the future does not undo the close.
#[must_use = "the handle is closed at once; await this, or `drop` it, to see or ignore the report of the closing phase"]
pub struct Close {
    header: Rc<Header>,
}

impl Close {
    /// Calls `callback` in the closing phase, where the future would be woken.
    ///
    /// Dropped unrun when the close was reported before.
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
