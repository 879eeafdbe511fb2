//! The signal listeners of this loop, in the order of start, and the signals that were caught for
//! them.
//!
//! ```text
//!   handler: note ──> Caught ── assign ──> waiting, an entry for each listener
//!                                           └── begin_pass ──> due ── next ──> called
//! ```
//!
//! The signal handler and the loop share [`Caught`] alone. It is emptied before a listener starts
//! or stops, so a signal is delivered to the listeners that were started when it was caught. A
//! listener that is stopped, or started for another signal, before its call is skipped, and
//! its close completes only after that.
// Rules of tests/LIBUV.md: R245, R115.

use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use super::Io;
use super::after_io::{AfterIo, Order, Subscriber};
use super::subscribers::Subscribers;
use crate::event_loop::core::Core;
use crate::event_loop::ledger::handles::{Header, Owner};
use crate::event_loop::phases::callback::CallbackSlot;
use crate::label::Label;
use crate::phase_order::Phase;
use crate::probe::Area;
use crate::sorted::SortedMap;
use crate::sys::poller::Poller;
use crate::sys::signal::{CHILD_SIGNAL, Caught, Watch, name, watch};

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

    /// Returns whether the listener was neither stopped nor started for another signal since it had
    /// this place.
    fn is_still_at(&self, place: u64) -> bool {
        self.started.get().is_some_and(|(_, now)| now == place)
    }
}

impl Owner for Listener {
    #[inline]
    fn label(&self, _: &Core) -> Option<Label> {
        Some(label([self.number()?]))
    }

    fn callback(&self) -> Option<&CallbackSlot> {
        Some(&self.callback)
    }

    fn is_still_due(&self) -> bool {
        self.entries.get() > 0
    }

    #[inline]
    fn stop_for_good(&self, core: &Core) {
        core.io.signals().stop(self);
        self.callback.clear();
    }
}

/// Names a listener by its signals.
pub(crate) fn label(numbers: impl IntoIterator<Item = i32>) -> Label {
    let names = numbers.into_iter().map(|number| match name(number) {
        Some(name) => name.to_owned(),
        None => number.to_string(),
    });
    Label::new("signal", names.collect::<Vec<_>>().join(", "))
}

#[derive(Default)]
pub(crate) struct Signals {
    /// Created with the first listener.
    caught: OnceCell<Arc<Caught>>,
    /// The listeners by signal. An entry that is due has the listener's place when the signal was
    /// caught.
    listeners: Subscribers<i32, Listener, u64>,
    /// The signals that the process catches for this loop, each with the number of its users.
    watches: RefCell<SortedMap<i32, (Watch, usize)>>,
    /// The entries of caught signals, with the listener's place. The next pass makes them due.
    waiting: RefCell<Vec<(Rc<Listener>, u64)>>,
    /// Whether a signal had been caught when the last wait ended.
    was_caught: Cell<bool>,
    /// Whether SIGCHLD was caught since the last pass.
    saw_child: Cell<bool>,
    /// Whether the running pass has SIGCHLD.
    passes_child: Cell<bool>,
}

impl Signals {
    /// Starts a listener behind all others. A listener that is already started for this signal
    /// keeps its place.
    // Rule R246.
    #[inline]
    fn start(
        &self,
        poller: &Poller,
        listener: &Rc<Listener>,
        number: i32,
        once: bool,
    ) -> io::Result<()> {
        if listener.number() != Some(number) {
            self.hold(poller, number)?;
            self.assign_caught();
            self.stop(listener);
            listener.is_waiting.set(false);
            let started = self.listeners.insert(number, listener.clone());
            listener.started.set(Some(started));
        }
        listener.once.set(once);
        Ok(())
    }

    #[inline]
    fn stop(&self, listener: &Listener) {
        self.assign_caught();
        if let Some(key) = listener.started.take() {
            let removed = self.listeners.remove(key);
            self.release(key.0);
            drop(removed);
        }
    }

    /// Installs the handler of a signal for this loop.
    #[inline]
    pub(crate) fn hold(&self, poller: &Poller, number: i32) -> io::Result<()> {
        if let Some((watch, count)) = self.watches.borrow_mut().get_mut(number) {
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

    #[inline]
    pub(crate) fn release(&self, number: i32) {
        let mut watches = self.watches.borrow_mut();
        if let Some((_, count)) = watches.get_mut(number) {
            *count -= 1;
            if *count == 0 {
                watches.remove(number);
            }
        }
    }

    /// Assigns the caught signals to their listeners, before a listener starts or stops. The mark
    /// of the first catch stays until the pass, so that a later catch leaves no wake-up behind for
    /// what the pass delivers.
    #[inline]
    fn assign_caught(&self) {
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
    #[inline]
    fn assign(&self, caught: &Caught) {
        let mut waiting = self.waiting.borrow_mut();
        for number in caught.take() {
            if Some(number) == CHILD_SIGNAL {
                self.saw_child.set(true);
            }
            self.listeners.each(number, |place, listener| {
                // The signal was caught again before its delivery: one call serves all catches
                // (R241).
                if !listener.is_waiting.replace(true) {
                    listener.entries.set(listener.entries.get() + 1);
                    waiting.push((listener.clone(), place));
                }
            });
        }
    }

    /// Begins a pass over the rest of an interrupted pass and all signals that were caught until
    /// now.
    #[inline]
    fn begin_pass(&self) {
        if let Some(caught) = self.marked() {
            caught.unmark();
            self.assign(caught);
        }
        for (listener, place) in self.waiting.take() {
            if listener.is_still_at(place) {
                listener.is_waiting.set(false);
            }
            self.listeners.push_due(listener, place);
        }
    }

    /// Returns whether the running pass has SIGCHLD, once in a pass.
    #[allow(dead_code, reason = "called for children only")]
    pub(crate) fn passes_child(&self) -> bool {
        self.passes_child.replace(false)
    }
}

impl Subscriber for Signals {
    const ORDER: Order = Order::Signals;
}

impl AfterIo for Signals {
    #[inline]
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn end_wait(&self) {
        self.was_caught.set(self.has_pending());
    }

    fn has_caught(&self) -> bool {
        self.has_pending()
    }

    fn has_pending(&self) -> bool {
        self.marked().is_some()
            || !self.waiting.borrow().is_empty()
            || self.saw_child.get()
            || self.listeners.has_due()
    }

    fn has_due(&self) -> bool {
        self.listeners.has_due()
    }

    /// Begins a pass if a signal had been caught when the wait ended. All signals caught by now
    /// belong to the pass. It counts as one event even if every listener is skipped.
    #[inline]
    fn collect(&self, _core: &Core) -> usize {
        let caught = self.was_caught.replace(false);
        if caught {
            self.begin_pass();
            self.passes_child.set(self.saw_child.replace(false));
        }
        usize::from(caught)
    }

    /// Calls the listeners of the pass. They count as one event, in `collect`.
    #[inline]
    fn deliver(&self, core: &Core) -> usize {
        while let Some((listener, place)) = self.listeners.pop_due() {
            listener.entries.set(listener.entries.get() - 1);
            if !listener.is_still_at(place) {
                continue;
            }
            if listener.once.get() {
                self.stop(&listener);
                core.set_active(&listener.header, false);
            }
            let header = &listener.header;
            let name = || format!("{} ({}) is received", header.label(core), header.site);
            core.executor.probe.log(Area::Signal, name);
            core.dispatch(Phase::Poll, || header.origin(), || listener.callback.call());
        }
        0
    }

    /// Drops the signals caught before a fork, which belong to the parent.
    // Rule R328.
    #[inline]
    fn reinit_after_fork(&self, _core: &Core) -> io::Result<()> {
        self.begin_pass();
        self.saw_child.set(false);
        while let Some((listener, _)) = self.listeners.pop_due() {
            listener.entries.set(listener.entries.get() - 1);
        }
        Ok(())
    }

    #[inline]
    fn shut_down(&self) {
        for listener in self.listeners.take() {
            listener.started.set(None);
        }
        drop(self.waiting.take());
        drop(self.watches.take());
    }
}

impl Io {
    #[inline]
    pub(crate) fn signals(&self) -> &Signals {
        self.subscriber()
    }

    /// Returns where the signals are recorded that are caught for this loop, if it has listeners.
    #[inline]
    pub(crate) fn caught_signals(&self) -> Option<Arc<Caught>> {
        self.signals().caught.get().cloned()
    }
}

impl Core {
    /// Starts a listener for a signal. `once`: the first signal stops it.
    #[inline]
    pub(crate) fn start_signal(
        &self,
        listener: &Rc<Listener>,
        number: i32,
        once: bool,
    ) -> io::Result<()> {
        self.waits.note_outside("a signal", listener.header.site);
        self.io
            .signals()
            .start(&self.io.poller, listener, number, once)
    }

    #[inline]
    pub(crate) fn stop_signal(&self, listener: &Listener) {
        self.io.signals().stop(listener);
    }
}
