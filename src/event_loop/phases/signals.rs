//! The signal listeners of this loop, in the order of start, and the signals that were caught for
//! them.
//!
//! ```text
//!   handler: note ──> Caught ── collect ──> waiting, an entry for each listener
//!                                            └── begin_pass ──> due ── next ──> called
//! ```
//!
//! The signal handler and the loop share [`Caught`] alone. It is emptied before a listener starts
//! or stops, so a signal is delivered to the listeners that were started when it was caught. A
//! listener that is stopped, or started for another signal, before its call is skipped, and
//! its close completes only after that.
// Rules of tests/LIBUV.md: R245, R115.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use super::callback::CallbackSlot;
use crate::event_loop::api::handle::{Header, Owner};
use crate::event_loop::core::Core;
use crate::sys::poller::Poller;
use crate::sys::signal::{Caught, SIGCHLD, Watch, watch};
use crate::turn::Phase;

/// The state that a listener shares with the loop.
pub(crate) struct Listener {
    pub(crate) header: Rc<Header>,
    pub(crate) callback: CallbackSlot,
    /// The signal of the listener and its place in the order of start.
    started: Cell<Option<(i32, u64)>>,
    /// Whether the listener stops before its first call.
    once: Cell<bool>,
    /// Whether the listener has an entry that was created since its start.
    is_waiting: Cell<bool>,
    /// The number of entries of the listener, including those that will be skipped.
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

    /// Returns the signal of the listener.
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

    fn stop_for_good(&self, core: &Core) {
        core.after_io.parts().signals.stop(self);
        self.callback.clear();
    }
}

/// A listener, with its place when the signal was caught.
struct Entry {
    listener: Rc<Listener>,
    place: u64,
}

impl Entry {
    /// Returns whether the listener was neither stopped nor started for another signal since.
    fn is_wanted(&self) -> bool {
        let started = self.listener.started.get();
        started.is_some_and(|(_, place)| place == self.place)
    }
}

#[derive(Default)]
pub(crate) struct Signals {
    /// Created with the first listener.
    caught: OnceCell<Arc<Caught>>,
    /// The listeners, by signal, then by place.
    listeners: RefCell<BTreeMap<(i32, u64), Rc<Listener>>>,
    /// The signals that the process catches for this loop, each with the number of its users.
    watches: RefCell<BTreeMap<i32, (Watch, usize)>>,
    next_place: Cell<u64>,
    /// Whether SIGCHLD was caught since the last check.
    saw_child: Cell<bool>,
    /// The entries of caught signals.
    waiting: RefCell<VecDeque<Entry>>,
    /// The entries of the running pass.
    due: RefCell<VecDeque<Entry>>,
}

impl Signals {
    /// Starts a listener behind all others. A listener that is already started for this signal
    /// keeps its place.
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

    /// Installs the handler of a signal for this loop.
    pub(in crate::event_loop) fn hold(&self, poller: &Poller, number: i32) -> io::Result<()> {
        if let Some((watch, count)) = self.watches.borrow_mut().get_mut(&number) {
            // Another handler may have replaced ours since the first listener started.
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

    pub(in crate::event_loop) fn release(&self, number: i32) {
        let mut watches = self.watches.borrow_mut();
        if let Some((_, count)) = watches.get_mut(&number) {
            *count -= 1;
            if *count == 0 {
                watches.remove(&number);
            }
        }
    }

    /// Returns whether a signal was caught, or is left from a pass that a panic interrupted.
    pub(crate) fn has_pending(&self) -> bool {
        self.marked().is_some()
            || !self.waiting.borrow().is_empty()
            || self.saw_child.get()
            || self.has_due()
    }

    pub(crate) fn has_due(&self) -> bool {
        !self.due.borrow().is_empty()
    }

    /// Assigns the caught signals to their listeners, before a listener starts or stops. The mark
    /// of the first catch stays until the pass, so that a later catch leaves no wake-up behind for
    /// what the pass delivers.
    fn collect(&self) {
        if let Some(caught) = self.marked() {
            self.assign(caught);
        }
    }

    fn marked(&self) -> Option<&Caught> {
        let caught = self.caught.get()?;
        caught.has_pending().then_some(caught)
    }

    /// Creates an entry for each listener of each caught signal: signals in the order of the catch,
    /// listeners in the order of start.
    fn assign(&self, caught: &Caught) {
        let listeners = self.listeners.borrow();
        let mut waiting = self.waiting.borrow_mut();
        for number in caught.take() {
            if number == SIGCHLD {
                self.saw_child.set(true);
            }
            for (&(_, place), listener) in listeners.range((number, 0)..=(number, u64::MAX)) {
                // The signal was caught again before its delivery: one call serves all catches
                // (R241).
                if !listener.is_waiting.replace(true) {
                    listener.entries.set(listener.entries.get() + 1);
                    let listener = listener.clone();
                    waiting.push_back(Entry { listener, place });
                }
            }
        }
    }

    /// Begins a pass over the rest of an interrupted pass and all signals that were caught until
    /// now.
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

    /// Returns whether SIGCHLD was caught since the last call.
    pub(in crate::event_loop) fn saw_child(&self) -> bool {
        self.saw_child.replace(false)
    }

    /// Returns the next listener to call, and whether it was a one-shot listener, which is now
    /// stopped.
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

    /// Drops the signals caught before a fork, which belong to the parent.
    // Rule R328.
    pub(in crate::event_loop) fn forget_caught(&self) {
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
    /// Starts a listener for a signal. `once`: the first signal stops it.
    pub(crate) fn start_signal(
        &self,
        listener: &Rc<Listener>,
        number: i32,
        once: bool,
    ) -> io::Result<()> {
        let signals = &self.after_io.parts().signals;
        signals.start(&self.poller, listener, number, once)
    }

    pub(crate) fn stop_signal(&self, listener: &Listener) {
        self.after_io.parts().signals.stop(listener);
    }

    /// Calls the listeners of the pass.
    pub(in crate::event_loop) fn run_signals(&self) {
        while let Some((listener, once)) = self.after_io.parts().signals.next() {
            if once {
                self.set_active(&listener.header, false);
            }
            self.dispatch(Phase::Poll, || listener.callback.call());
        }
    }
}
