//! Async handles: flags that other threads set and the poll phase checks, in the order of creation.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Io;
use crate::event_loop::core::Core;
use crate::event_loop::ledger::handles::{Header, Owner};
use crate::event_loop::phases::callback::CallbackSlot;
use crate::sorted::SortedMap;

/// The state that an async handle shares with the loop.
pub(crate) struct AsyncState {
    pub(crate) header: Rc<Header>,
    pub(crate) callback: CallbackSlot,
    pub(crate) sent: Arc<Sent>,
    /// Set by a callback that has more to do: it is called again after a drain, before the next
    /// handles.
    pub(crate) again: Cell<bool>,
    place: u64,
}

/// The state that an async handle shares with its senders.
#[derive(Default)]
pub(crate) struct Sent {
    /// Set by a send until the callback runs; further sends coalesce.
    pub(crate) pending: AtomicBool,
    pub(crate) closed: AtomicBool,
}

impl Owner for AsyncState {
    fn callback(&self) -> Option<&CallbackSlot> {
        Some(&self.callback)
    }

    fn stop_for_good(&self, core: &Core) {
        core.io.asyncs.remove(self);
        self.callback.clear();
    }
}

pub(super) struct Asyncs {
    /// By number, in the order of creation.
    // Rule R120.
    list: RefCell<SortedMap<u64, Rc<AsyncState>>>,
    next_place: Cell<u64>,
}

impl Asyncs {
    pub(crate) fn new() -> Self {
        Self {
            list: RefCell::default(),
            next_place: Cell::new(0),
        }
    }

    pub(crate) fn make(&self, header: Rc<Header>, callback: Box<dyn FnMut()>) -> AsyncState {
        let place = self.next_place.get();
        self.next_place.set(place + 1);
        AsyncState {
            header,
            callback: CallbackSlot::new(Some(callback)),
            sent: Arc::default(),
            again: Cell::new(false),
            place,
        }
    }

    pub(crate) fn insert(&self, state: &Rc<AsyncState>) {
        state.header.belongs_to(state);
        self.list.borrow_mut().insert(state.place, state.clone());
    }

    pub(crate) fn remove(&self, state: &AsyncState) {
        state.sent.closed.store(true, Ordering::Release);
        self.list.borrow_mut().remove(state.place);
    }

    /// Drops the sends from before a fork, which belong to the parent.
    // Rule R328.
    pub(in crate::event_loop) fn forget_sent(&self) {
        for (_, state) in self.list.borrow().iter() {
            state.sent.pending.store(false, Ordering::Release);
        }
    }

    /// Returns whether a send has not been called back.
    pub(crate) fn any_sent(&self) -> bool {
        let list = self.list.borrow();
        list.iter()
            .any(|(_, state)| state.sent.pending.load(Ordering::Acquire))
    }

    /// Starts a walk over the handles that exist now. Handles created during the walk are not
    /// visited.
    // Rule R123.
    pub(crate) fn walk(&self) -> Walk {
        Walk {
            next: 0,
            end: self.next_place.get(),
        }
    }

    /// Returns the next handle of the walk with a pending send, and clears its mark.
    // Rule R119.
    pub(crate) fn next(&self, walk: &mut Walk) -> Option<Rc<AsyncState>> {
        if walk.next == walk.end {
            return None;
        }
        let list = self.list.borrow();
        let listed = list.starting_at(walk.next);
        for (place, state) in listed.take_while(|&(place, _)| place < walk.end) {
            if state.sent.pending.swap(false, Ordering::AcqRel) {
                walk.next = place + 1;
                return Some(state.clone());
            }
        }
        None
    }

    /// Closes all handles when the loop is dropped.
    pub(crate) fn clear(&self) {
        let list = self.list.take();
        for (_, state) in list.iter() {
            state.sent.closed.store(true, Ordering::Release);
        }
        // Dropping a callback may run user code; nothing is borrowed here.
        drop(list);
    }
}

pub(super) struct Walk {
    next: u64,
    end: u64,
}

impl Io {
    pub(crate) fn make_async(&self, header: Rc<Header>, callback: Box<dyn FnMut()>) -> AsyncState {
        self.asyncs.make(header, callback)
    }

    pub(crate) fn add_async(&self, state: &Rc<AsyncState>) {
        self.asyncs.insert(state);
    }
}
