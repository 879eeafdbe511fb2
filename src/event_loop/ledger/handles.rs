//! The handles that a loop knows: their flags, their stage, and what waits for their close.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::task::Waker;

use super::Ledger;
use crate::event_loop::core::Core;
use crate::event_loop::phases::callback::CallbackSlot;
use crate::keeper::Keeper;
use crate::label::Label;
use crate::probe::Origin;
use crate::raw::slots::Slots;
use crate::raw::unwind::Steps;
use crate::site::Site;
use crate::sorted::sorted_by_number;

/// The flags of one handle, shared by the handle and the loop.
pub(crate) struct Header {
    pub(crate) kind: Keeper,
    pub(crate) site: Site,
    /// The number of the handle in the order of creation, over all kinds.
    id: u64,
    slot: u32,
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

    /// Names the handle as users do, if its kind alone does not say enough. The OS may be asked:
    /// no name is kept.
    fn label(&self, _core: &Core) -> Option<Label> {
        None
    }

    /// Returns whether an event from before the close is still to be delivered.
    fn is_still_due(&self) -> bool {
        false
    }

    /// Returns whether an active handle still has what made it active. The wait of a future that an
    /// event has ended counts until the callback of the event returns, since the next wait usually
    /// begins before.
    fn is_still_active(&self) -> bool {
        true
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
    list: Slots<Rc<Header>>,
    next_id: Cell<u64>,
}

impl Handles {
    pub(crate) fn new() -> Self {
        Self {
            list: Slots::new(),
            next_id: Cell::new(0),
        }
    }
}

/// The open handles.
impl Ledger {
    /// Adds a new handle.
    pub(crate) fn open(&self, kind: Keeper, site: Site) -> Rc<Header> {
        let Handles { list, next_id } = &self.handles;
        let id = next_id.get();
        next_id.set(id + 1);
        let slot = u32::try_from(list.next());
        let header = Rc::new(Header {
            slot: slot.expect("fewer than 2^32 handles are open at once"),
            ..Header::new(kind, site, id)
        });
        list.insert(header.clone());
        header
    }

    /// Removes a handle that is closed.
    pub(in crate::event_loop) fn close(&self, header: &Header) {
        if header.stage.replace(Stage::Closed) != Stage::Closed {
            drop(self.handles.list.remove(header.slot as usize));
        }
    }

    pub(crate) fn handle_count(&self) -> usize {
        self.handles.list.list().len()
    }

    /// Takes the wakers that wait on any handle, when the loop is dropped.
    pub(in crate::event_loop) fn take_wakers(&self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for header in self.headers() {
            if let Some(owner) = header.owner() {
                wakers.append(&mut owner.take_waiters());
            }
        }
        wakers
    }

    /// Stops all handles and drops their callbacks, when the loop is dropped, also those of handles
    /// that are not started: a callback may own its handle.
    pub(in crate::event_loop) fn shut_down_handles(&self, steps: &mut Steps) {
        for header in self.handles.list.list() {
            header.active.set(false);
            let owner = header.owner();
            if let Some(callback) = owner.as_ref().and_then(|owner| owner.callback()) {
                steps.run(|| callback.clear());
            }
            // This may be the last reference, whose drop is user code.
            steps.run(|| drop(owner));
        }
    }

    /// Returns the open handles, oldest first.
    pub(crate) fn headers(&self) -> Vec<Rc<Header>> {
        let headers = self.handles.list.list().into_iter();
        sorted_by_number(headers.map(|header| (header.id, header)))
    }
}

impl Header {
    /// Returns where the callbacks of the handle come from.
    pub(crate) fn origin(&self) -> Origin {
        Origin::new(self.kind, Some(self.site))
    }

    /// Adds a waiter for the close.
    pub(crate) fn report_close(&self, who: OnClose) {
        let on_close = self.on_close.get_or_init(Box::default);
        on_close.borrow_mut().push_back(who);
    }

    /// Returns whether a waiter for the close has this waker.
    pub(crate) fn reports_close(&self, waker: &Waker) -> bool {
        let is_known =
            |entry: &OnClose| matches!(entry, OnClose::Wake(known) if known.will_wake(waker));
        self.on_close
            .get()
            .is_some_and(|on_close| on_close.borrow().iter().any(is_known))
    }

    /// Takes the next waiter for the close.
    pub(crate) fn next_to_report(&self) -> Option<OnClose> {
        self.on_close.get()?.borrow_mut().pop_front()
    }

    /// Returns whether there is a waiter for the close.
    pub(crate) fn has_to_report(&self) -> bool {
        self.on_close
            .get()
            .is_some_and(|on_close| !on_close.borrow().is_empty())
    }

    pub(crate) fn new(kind: Keeper, site: Site, id: u64) -> Self {
        Self {
            kind,
            site,
            id,
            slot: 0,
            active: Cell::new(false),
            referenced: Cell::new(true),
            stage: Cell::new(Stage::Open),
            owner: OnceCell::new(),
            on_close: OnceCell::new(),
        }
    }

    pub(crate) fn owner(&self) -> Option<Rc<dyn Owner>> {
        self.owner.get().and_then(Weak::upgrade)
    }

    /// Returns whether the handle is started, as users see it.
    pub(crate) fn is_active(&self) -> bool {
        self.active.get() && self.owner().is_none_or(|owner| owner.is_still_active())
    }

    /// Returns whether an event from before the close is still to be delivered.
    pub(in crate::event_loop) fn is_still_due(&self) -> bool {
        self.owner().is_some_and(|owner| owner.is_still_due())
    }

    pub(crate) fn stop_for_good(&self, core: &Core) {
        if let Some(owner) = self.owner() {
            owner.stop_for_good(core);
        }
        core.set_active(self, false);
    }

    /// Returns the data pointers of the wakers that wait on the handle.
    pub(crate) fn wakers(&self) -> Vec<*const ()> {
        self.owner().map_or_else(Vec::new, |owner| owner.wakers())
    }

    /// Sets the state with the handle's callback or waiters.
    pub(crate) fn belongs_to<O: Owner + 'static>(&self, owner: &Rc<O>) {
        let owner = Rc::downgrade(owner);
        let known = self.owner.set(owner);
        debug_assert!(known.is_ok(), "a handle has one owner");
    }

    /// Names the handle as users do.
    pub(crate) fn label(&self, core: &Core) -> Label {
        let label = self.owner().and_then(|owner| owner.label(core));
        label.unwrap_or_else(|| Label::new(self.kind.text(), ""))
    }
}
