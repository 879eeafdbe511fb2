//! The timers phase's state: sleeps and timer handles in one heap.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;

use super::callback::CallbackSlot;
use super::clock::NEVER;
use super::core::Core;
use super::handles::{Header, Owner};
use super::heap::{Removed, TimerHeap, TimerKey};
use crate::kinds::Site;

/// What a timer handle and the loop share.
pub(crate) struct TimerState {
    pub(crate) header: Rc<Header>,
    pub(crate) callback: CallbackSlot,
    /// Whether `start` was ever called.
    pub(crate) started: Cell<bool>,
    /// Nanoseconds between firings; zero for a one-shot.
    pub(crate) repeat: Cell<u64>,
    /// When the timer is, or was last, due.
    pub(crate) due: Cell<u64>,
    /// Its callback stands for several: it drains the lanes between them and after the last (Node's lists of timers).
    pub(crate) drains: Cell<bool>,
    /// Where the timer is, in the heap or in the ready list.
    pub(crate) armed: Cell<Option<TimerKey>>,
}

impl TimerState {
    pub(crate) fn new(header: Rc<Header>) -> Rc<Self> {
        let state = Rc::new(Self {
            header,
            callback: CallbackSlot::new(None),
            started: Cell::new(false),
            repeat: Cell::new(0),
            due: Cell::new(0),
            drains: Cell::new(false),
            armed: Cell::new(None),
        });
        let owner = Rc::downgrade(&state);
        state.header.belongs_to(owner);
        state
    }
}

impl Owner for TimerState {
    fn callback(&self) -> Option<&CallbackSlot> {
        Some(&self.callback)
    }

    fn shut(&self, core: &Core) {
        core.disarm_timer(self);
        self.callback.clear();
    }
}

/// What fires.
pub(crate) enum Payload {
    /// With the line that sleeps. Marked if it keeps the loop alive.
    Sleep {
        waker: Waker,
        site: Site,
    },
    Timer(Rc<TimerState>),
}

/// The earliest deadline, and the clock it is measured by.
pub(crate) struct Next {
    pub(crate) deadline: u64,
    /// A sleep counts from the real clock, a timer handle from the cached one; Node's from the real one (N31).
    pub(crate) by_real_clock: bool,
}

pub(crate) struct Timers {
    heap: RefCell<TimerHeap<Payload>>,
}

impl Timers {
    pub(crate) fn new() -> Self {
        Self {
            heap: RefCell::new(TimerHeap::new()),
        }
    }

    /// Arms something; of a sleep, `referenced` says whether it keeps the loop alive.
    pub(crate) fn insert(&self, deadline: u64, payload: Payload, referenced: bool) -> TimerKey {
        self.heap.borrow_mut().insert(deadline, payload, referenced)
    }

    pub(crate) fn remove(&self, key: TimerKey) -> Option<Removed<Payload>> {
        self.heap.borrow_mut().remove(key)
    }

    /// Makes a sleep wake `waker`. `false`: it has fired.
    pub(crate) fn set_waker(&self, key: TimerKey, new: &Waker) -> bool {
        match self.heap.borrow_mut().get_mut(key) {
            None => return false,
            Some(Payload::Sleep { waker, .. }) if !waker.will_wake(new) => {}
            Some(_) => return true,
        }
        // The clone and the drop of a waker may be anybody's code, and are outside the borrow.
        let mut new = new.clone();
        let mut heap = self.heap.borrow_mut();
        let Some(Payload::Sleep { waker, .. }) = heap.get_mut(key) else {
            return false;
        };
        std::mem::swap(waker, &mut new);
        drop(heap);
        drop(new);
        true
    }

    /// Changes whether a sleep counts. `true`: it did the opposite until now.
    pub(crate) fn set_referenced(&self, key: TimerKey, new: bool) -> bool {
        self.heap.borrow_mut().set_mark(key, new)
    }

    /// Whether the entry has neither fired nor been removed.
    pub(crate) fn is_armed(&self, key: TimerKey) -> bool {
        self.heap.borrow_mut().get_mut(key).is_some()
    }

    /// Whether nothing is armed, and nothing waits to fire.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.heap.borrow().is_empty()
    }

    /// The earliest deadline that can be reached.
    pub(crate) fn next(&self) -> Option<Next> {
        let heap = self.heap.borrow();
        let (deadline, payload) = heap.first()?;
        (deadline != NEVER).then_some(Next {
            deadline,
            by_real_clock: match payload {
                Payload::Sleep { .. } => true,
                Payload::Timer(timer) => timer.drains.get(),
            },
        })
    }

    /// Calls `f`, which must not come back here, with all that is armed and when it is due.
    pub(super) fn each(&self, mut f: impl FnMut(u64, &Payload, bool)) {
        for (deadline, payload, referenced) in self.heap.borrow().iter() {
            f(deadline, payload, referenced);
        }
    }

    /// A pass begins: everything due by `now` becomes ready (R53).
    pub(crate) fn begin_pass(&self, now: u64, collected: impl FnMut(&Payload, bool)) {
        self.heap.borrow_mut().collect_due(now, collected);
    }

    /// The next one that is ready.
    pub(crate) fn pop_ready(&self) -> Option<Payload> {
        self.heap.borrow_mut().pop_ready()
    }

    /// The pass was cut short: what has not fired is armed again.
    pub(crate) fn put_back_ready(&self, put_back: impl FnMut(&Payload, bool)) {
        self.heap.borrow_mut().put_back_ready(put_back);
    }

    pub(crate) fn drain(&self) -> Vec<Payload> {
        self.heap.borrow_mut().drain()
    }
}
