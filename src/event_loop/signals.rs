//! Who listens to signals on this loop, in the order of start, and what was caught for them.
//!
//! ```text
//!   handler: note ──> Caught ── collect ──> waiting, one entry a listener ── begin_pass ──> due ── next ──> called
//! ```
//!
//! The handler and the loop share [`Caught`] alone. It is emptied before a listener comes or goes,
//! so a signal is for those who listened when it was caught. A listener that is stopped, or started
//! for another signal, between the catch and its turn is passed over (R245), and reported closed
//! only then (R115).

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
    /// Whether an entry waits for it that was made since it was started.
    is_waiting: Cell<bool>,
    /// How many entries there are for it, passed over or not.
    entries: Cell<usize>,
}

impl Listener {
    pub(crate) fn new(header: Rc<Header>) -> Rc<Self> {
        Rc::new(Self {
            header,
            callback: CallbackSlot::new(None),
            started: Cell::new(None),
            once: Cell::new(false),
            is_waiting: Cell::new(false),
            entries: Cell::new(0),
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

    fn is_still_due(&self) -> bool {
        self.entries.get() > 0
    }

    fn shut(&self, core: &Core) {
        core.late.parts().signals.stop(self);
        self.callback.clear();
    }
}

/// A listener, with the place it had at the time of the catch.
struct Entry {
    listener: Rc<Listener>,
    place: u64,
}

impl Entry {
    /// Whether the listener was neither stopped nor started for another signal since.
    fn is_wanted(&self) -> bool {
        let started = self.listener.started.get();
        started.is_some_and(|(_, place)| place == self.place)
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
    /// For whom something was caught.
    waiting: RefCell<VecDeque<Entry>>,
    /// Whose turn it is.
    due: RefCell<VecDeque<Entry>>,
}

impl Signals {
    /// Starts a listener behind all others; one that listens to the same signal already keeps its
    /// place.
    // Rule R246.
    pub(crate) fn start(
        &self,
        poller: &Poller,
        listener: &Rc<Listener>,
        number: i32,
        once: bool,
    ) -> io::Result<()> {
        if listener.number() != Some(number) {
            self.hold(poller, number)?;
            self.collect();
            self.stop(listener);
            listener.is_waiting.set(false);
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
        self.collect();
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
        self.marked().is_some()
            || !self.waiting.borrow().is_empty()
            || self.saw_child.get()
            || self.has_due()
    }

    pub(crate) fn has_due(&self) -> bool {
        !self.due.borrow().is_empty()
    }

    /// Before a listener comes or goes: what was caught is for those who are there. The mark of the
    /// first catch stays until the pass, so that a later catch leaves no wake-up behind for what
    /// the pass delivers.
    fn collect(&self) {
        if let Some(caught) = self.marked() {
            self.assign(caught);
        }
    }

    fn marked(&self) -> Option<&Caught> {
        let caught = self.caught.get()?;
        caught.any().then_some(caught)
    }

    /// Makes an entry for each listener of each signal that was caught: signals in the order of the
    /// catch, listeners in the order of start.
    fn assign(&self, caught: &Caught) {
        let listeners = self.listeners.borrow();
        let mut waiting = self.waiting.borrow_mut();
        for number in caught.take() {
            if number == SIGCHLD {
                self.saw_child.set(true);
            }
            for (&(_, place), listener) in listeners.range((number, 0)..=(number, u64::MAX)) {
                // Caught again before its turn: once for all catches (R241).
                if !listener.is_waiting.replace(true) {
                    listener.entries.set(listener.entries.get() + 1);
                    let listener = listener.clone();
                    waiting.push_back(Entry { listener, place });
                }
            }
        }
    }

    /// A pass begins: all that was caught until now comes to its turn, after what an unfinished
    /// pass has left.
    pub(crate) fn begin_pass(&self) {
        if let Some(caught) = self.marked() {
            caught.unmark();
            self.assign(caught);
        }
        let mut waiting = self.waiting.borrow_mut();
        for entry in waiting.iter().filter(|entry| entry.is_wanted()) {
            entry.listener.is_waiting.set(false);
        }
        self.due.borrow_mut().append(&mut waiting);
    }

    /// Whether SIGCHLD was caught since the last time.
    pub(super) fn saw_child(&self) -> bool {
        self.saw_child.replace(false)
    }

    /// The next listener that is to be called. `true` says that it was for once, and is stopped
    /// now.
    pub(crate) fn next(&self) -> Option<(Rc<Listener>, bool)> {
        loop {
            let entry = self.due.borrow_mut().pop_front()?;
            let listener = &entry.listener;
            listener.entries.set(listener.entries.get() - 1);
            if entry.is_wanted() {
                let once = listener.once.get();
                if once {
                    self.stop(listener);
                }
                return Some((entry.listener, once));
            }
        }
    }

    /// After a fork: what was caught before is the parent's.
    // Rule R328.
    pub(super) fn forget_caught(&self) {
        self.begin_pass();
        self.saw_child.set(false);
        for entry in self.due.take() {
            let listener = entry.listener;
            listener.entries.set(listener.entries.get() - 1);
        }
    }

    pub(crate) fn drain(&self) {
        for listener in self.listeners.take().into_values() {
            listener.started.set(None);
        }
        drop(self.waiting.take());
        drop(self.due.take());
        drop(self.watches.take());
    }
}

impl Core {
    /// Calls those whose turn it is.
    pub(super) fn run_signals(&self) {
        while let Some((listener, once)) = self.late.parts().signals.next() {
            if once {
                self.set_active(&listener.header, false);
            }
            self.dispatch(Phase::Poll, || listener.callback.call());
        }
    }
}
