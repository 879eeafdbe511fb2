//! Who listens to signals on this loop, in the order of start, and what was caught for them.
//!
//! ```text
//!   handler: note ──> Caught ── end of the poll batch: collect ──> due, one entry a listener ── next ──> called
//! ```
//!
//! The handler and the loop share [`Caught`] alone. A listener that is stopped, or started for another signal, between
//! the catch and its turn is passed over (R245).

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use super::callback::CallbackSlot;
use super::core::Core;
use super::handles::{Header, Owner};
use crate::kinds::Phase;
use crate::sys::poller::Poller;
use crate::sys::signal::{Caught, SIGCHLD, Watch, watch};

/// What a listener and the loop share.
pub(crate) struct Listener {
    pub(crate) header: Rc<Header>,
    pub(crate) callback: CallbackSlot,
    /// The signal it listens to and its place in the order of start.
    started: Cell<Option<(i32, u64)>>,
    /// Whether it stops before its first call.
    once: Cell<bool>,
}

impl Listener {
    pub(crate) fn new(header: Rc<Header>) -> Rc<Self> {
        Rc::new(Self {
            header,
            callback: CallbackSlot::new(None),
            started: Cell::new(None),
            once: Cell::new(false),
        })
    }

    /// The signal it listens to.
    pub(crate) fn number(&self) -> Option<i32> {
        self.started.get().map(|(number, _)| number)
    }
}

impl Owner for Listener {
    fn callback(&self) -> Option<&CallbackSlot> {
        Some(&self.callback)
    }
}

#[derive(Default)]
pub(crate) struct Signals {
    /// Made with the first listener.
    caught: OnceCell<Arc<Caught>>,
    /// By signal, then by place.
    listeners: RefCell<BTreeMap<(i32, u64), Rc<Listener>>>,
    /// What the process is asked to catch for this loop, and for how many.
    watches: RefCell<BTreeMap<i32, (Watch, usize)>>,
    next_place: Cell<u64>,
    /// Whether SIGCHLD was caught since that was last asked.
    saw_child: Cell<bool>,
    /// Whose turn it is, with the place they had at the time of the catch.
    due: RefCell<VecDeque<(Rc<Listener>, u64)>>,
}

impl Signals {
    /// Starts a listener behind all others; one that listens to the same signal already keeps its place (R246).
    pub(crate) fn start(
        &self,
        poller: &Poller,
        listener: &Rc<Listener>,
        number: i32,
        once: bool,
    ) -> io::Result<()> {
        if listener.number() != Some(number) {
            self.hold(poller, number)?;
            self.stop(listener);
            let place = self.next_place.get();
            self.next_place.set(place + 1);
            listener.started.set(Some((number, place)));
            let mut listeners = self.listeners.borrow_mut();
            listeners.insert((number, place), listener.clone());
        }
        listener.once.set(once);
        Ok(())
    }

    pub(crate) fn stop(&self, listener: &Listener) {
        if let Some(key) = listener.started.take() {
            let removed = self.listeners.borrow_mut().remove(&key);
            self.release(key.0);
            drop(removed);
        }
    }

    /// Has the process catch a signal for this loop.
    pub(super) fn hold(&self, poller: &Poller, number: i32) -> io::Result<()> {
        if let Some((watch, count)) = self.watches.borrow_mut().get_mut(&number) {
            // Another handler may have taken the place of ours since the first listener started.
            watch.install()?;
            *count += 1;
            return Ok(());
        }
        let caught = self
            .caught
            .get_or_init(|| Arc::new(Caught::new(poller.notifier())));
        let watch = watch(number, caught)?;
        self.watches.borrow_mut().insert(number, (watch, 1));
        Ok(())
    }

    pub(super) fn release(&self, number: i32) {
        let mut watches = self.watches.borrow_mut();
        if let Some((_, count)) = watches.get_mut(&number) {
            *count -= 1;
            if *count == 0 {
                watches.remove(&number);
            }
        }
    }

    /// Whether something was caught, or is left from a pass that a panic cut short.
    pub(crate) fn any(&self) -> bool {
        self.caught.get().is_some_and(|caught| caught.any()) || self.has_due()
    }

    pub(crate) fn has_due(&self) -> bool {
        !self.due.borrow().is_empty()
    }

    /// Makes an entry for each listener of each signal that was caught: signals in the order of the catch, listeners in
    /// the order of start.
    pub(crate) fn collect(&self) {
        let Some(caught) = self.caught.get() else {
            return;
        };
        let listeners = self.listeners.borrow();
        let mut due = self.due.borrow_mut();
        for number in caught.take() {
            if number == SIGCHLD {
                self.saw_child.set(true);
            }
            let range = listeners.range((number, 0)..=(number, u64::MAX));
            due.extend(range.map(|(&(_, place), listener)| (listener.clone(), place)));
        }
    }

    /// Whether SIGCHLD was caught since the last time.
    pub(super) fn saw_child(&self) -> bool {
        self.saw_child.replace(false)
    }

    /// The next listener that is to be called. `true` says that it was for once, and is stopped now.
    pub(crate) fn next(&self) -> Option<(Rc<Listener>, bool)> {
        loop {
            let (listener, place) = self.due.borrow_mut().pop_front()?;
            if listener.started.get().is_some_and(|(_, now)| now == place) {
                let once = listener.once.get();
                if once {
                    self.stop(&listener);
                }
                return Some((listener, once));
            }
        }
    }

    pub(crate) fn drain(&self) {
        for listener in self.listeners.take().into_values() {
            listener.started.set(None);
        }
        drop(self.due.take());
        drop(self.watches.take());
    }
}

impl Core {
    /// Calls those whose turn it is; returns how many.
    pub(super) fn run_signals(&self) -> usize {
        let mut dispatched = 0;
        while let Some((listener, once)) = self.late.parts().signals.next() {
            if once {
                self.set_active(&listener.header, false);
            }
            self.dispatch(Phase::Poll, || listener.callback.call());
            dispatched += 1;
        }
        dispatched
    }
}
