//! Async handles: flags that other threads set and the poll phase looks at, in the order of creation.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::callback::CallbackSlot;
use super::core::Core;
use super::handles::{Header, Owner};

/// What an async handle and the loop share.
pub(crate) struct AsyncState {
    pub(crate) header: Rc<Header>,
    pub(crate) callback: CallbackSlot,
    pub(crate) sent: Arc<Sent>,
    /// Set by the callback: it has more to do, and wants to be called again, after a drain, before the handles after it.
    pub(crate) again: Cell<bool>,
    place: u64,
}

/// What an async handle and its senders share.
#[derive(Default)]
pub(crate) struct Sent {
    /// Sent and not yet called back: further sends coalesce.
    pub(crate) pending: AtomicBool,
    pub(crate) closed: AtomicBool,
}

impl Owner for AsyncState {
    fn callback(&self) -> Option<&CallbackSlot> {
        Some(&self.callback)
    }

    fn shut(&self, core: &Core) {
        core.asyncs.remove(self);
        self.callback.clear();
    }
}

pub(crate) struct Asyncs {
    /// By place, which is the order of creation (R120).
    list: RefCell<BTreeMap<u64, Rc<AsyncState>>>,
    next_place: Cell<u64>,
}

impl Asyncs {
    pub(crate) fn new() -> Self {
        Self {
            list: RefCell::new(BTreeMap::new()),
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
        let owner = Rc::downgrade(state);
        state.header.belongs_to(owner);
        self.list.borrow_mut().insert(state.place, state.clone());
    }

    pub(crate) fn remove(&self, state: &AsyncState) {
        state.sent.closed.store(true, Ordering::Release);
        self.list.borrow_mut().remove(&state.place);
    }

    /// After a fork: what was sent before is the parent's (R328).
    pub(super) fn forget_sent(&self) {
        for state in self.list.borrow().values() {
            state.sent.pending.store(false, Ordering::Release);
        }
    }

    /// Whether something was sent that nobody was called back for.
    pub(crate) fn any_sent(&self) -> bool {
        let list = self.list.borrow();
        list.values()
            .any(|state| state.sent.pending.load(Ordering::Acquire))
    }

    /// A walk over the handles there are now; those made during it are not visited (R123).
    pub(crate) fn walk(&self) -> Walk {
        Walk {
            next: 0,
            end: self.next_place.get(),
        }
    }

    /// The next handle of the walk with something sent; its mark is cleared (R119).
    pub(crate) fn next(&self, walk: &mut Walk) -> Option<Rc<AsyncState>> {
        let list = self.list.borrow();
        for (place, state) in list.range(walk.next..walk.end) {
            if state.sent.pending.swap(false, Ordering::AcqRel) {
                walk.next = place + 1;
                return Some(state.clone());
            }
        }
        None
    }

    pub(crate) fn drain(&self) -> Vec<Rc<AsyncState>> {
        let list = std::mem::take(&mut *self.list.borrow_mut());
        let states: Vec<_> = list.into_values().collect();
        for state in &states {
            state.sent.closed.store(true, Ordering::Release);
        }
        states
    }
}

pub(crate) struct Walk {
    next: u64,
    end: u64,
}
