//! The started poll handles of a loop. They are level-triggered: the kernel reports a handle as
//! long as it is ready.
//!
//! Each start has a key of its own, so that an event of a handle that was stopped, closed or
//! restarted after the event was reported is dropped.
// Rules of tests/LIBUV.md: R239.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use super::Io;
use crate::event_loop::core::Core;
use crate::event_loop::ledger::handles::{Header, Owner};
use crate::event_loop::phases::callback::CallbackSlot;
use crate::phase_order::Phase;
use crate::sorted::SortedMap;
use crate::sys::poller::{AsSource, Events, NEEDS_REARM, PollEvents, RawSource};

/// The bit that is set in the keys of poll handles and in no key of a source.
const MARK: usize = 1 << (usize::BITS - 1);
/// The mask of the other bits, without the highest keys: those belong to the poller and the
/// watches.
const NUMBERS: usize = MARK >> 1;

/// The state that a poll handle shares with the loop.
pub(crate) struct PollState {
    pub(crate) header: Rc<Header>,
    pub(crate) callback: CallbackSlot,
    /// The descriptor, which stays open as long as the handle exists.
    pub(super) source: RawSource,
    /// The registration, while the handle is started.
    pub(super) key: Cell<Option<usize>>,
    events: Cell<PollEvents>,
    /// The events of the current call.
    reported: Cell<Option<io::Result<PollEvents>>>,
}

impl PollState {
    pub(crate) fn new(header: Rc<Header>, source: &impl AsSource) -> Rc<Self> {
        let state = Rc::new(Self {
            header,
            callback: CallbackSlot::new(None),
            source: RawSource::of(source),
            key: Cell::new(None),
            events: Cell::default(),
            reported: Cell::new(None),
        });
        state.header.belongs_to(&state);
        state
    }

    /// Returns the events that the handle is started for.
    pub(crate) fn events(&self) -> PollEvents {
        self.events.get()
    }

    /// Takes the events, or the error, that the callback is called for.
    pub(crate) fn take_reported(&self) -> io::Result<PollEvents> {
        self.reported.take().unwrap_or(Ok(PollEvents::NONE))
    }
}

impl Owner for PollState {
    fn callback(&self) -> Option<&CallbackSlot> {
        Some(&self.callback)
    }

    fn stop_for_good(&self, core: &Core) {
        core.stop_poll(self);
        self.callback.clear();
    }
}

#[derive(Default)]
pub(super) struct PollHandles {
    pub(super) started: RefCell<SortedMap<usize, Rc<PollState>>>,
    last: Cell<usize>,
}

impl PollHandles {
    fn next_key(&self) -> usize {
        let started = self.started.borrow();
        loop {
            let number = (self.last.get() + 1) % NUMBERS;
            self.last.set(number);
            let key = MARK | number;
            if started.get(key).is_none() {
                return key;
            }
        }
    }

    pub(super) fn get(&self, key: usize) -> Option<Rc<PollState>> {
        self.started.borrow().get(key).cloned()
    }

    /// Removes the handle from the list and returns whether it was listed.
    fn forget(&self, poll: &PollState) -> bool {
        let key = poll.key.take();
        let removed = key.and_then(|key| self.started.borrow_mut().remove(key));
        removed.is_some()
    }

    /// Empties the list when the loop is dropped.
    pub(in crate::event_loop) fn drain(&self) {
        drop(self.started.take());
    }
}

impl Io {
    /// Registers the started handles with the poller of the child process after a fork.
    pub(in crate::event_loop) fn register_poll_handles_again(&self) -> io::Result<()> {
        let started = self.poll_handles.started.borrow();
        started.iter().try_for_each(|(key, poll)| {
            let events = poll.events.get();
            self.poller.add_level(poll.source, key, events)
        })
    }
}

impl Core {
    /// Starts a poll handle, or changes the events of a started one.
    pub(crate) fn start_poll(&self, poll: &Rc<PollState>, events: PollEvents) -> io::Result<()> {
        if events.is_empty() {
            self.stop_poll(poll);
            return Ok(());
        }
        let (was_started, key) = (
            self.io.poll_handles.forget(poll),
            self.io.poll_handles.next_key(),
        );
        let watched = if was_started {
            self.io.poller.change_level(poll.source, key, events)
        } else {
            self.io.poller.add_level(poll.source, key, events)
        };
        if let Err(error) = watched {
            if was_started {
                self.io.poller.remove(poll.source);
            }
            self.end_poll(poll);
            return Err(error);
        }
        poll.key.set(Some(key));
        poll.events.set(events);
        self.io
            .poll_handles
            .started
            .borrow_mut()
            .insert(key, poll.clone());
        self.set_active(&poll.header, true);
        Ok(())
    }

    pub(crate) fn stop_poll(&self, poll: &PollState) {
        if self.io.poll_handles.forget(poll) {
            self.io.poller.remove(poll.source);
        }
        self.end_poll(poll);
    }

    fn end_poll(&self, poll: &PollState) {
        poll.events.set(PollEvents::NONE);
        self.set_active(&poll.header, false);
    }

    /// Dispatches the next event if it belongs to a poll handle, and returns the number of
    /// callbacks.
    pub(in crate::event_loop) fn run_poll_handle(&self, key: usize, events: &Events) -> usize {
        let poll = self.io.poll_handles.get(key);
        let reported = poll.as_ref().map(|poll| events.reported(poll.events.get()));
        // The event is consumed before the call: after a panic the kernel reports it again if the
        // handle is still ready.
        events.advance();
        let (Some(poll), Some(Some(reported))) = (poll, reported) else {
            return 0;
        };
        if reported.is_err() {
            // The handle stops: a level-triggered error would be reported again and again (R238).
            self.stop_poll(&poll);
        }
        poll.reported.set(Some(reported));
        let _rearm = Rearm {
            core: self,
            poll: &poll,
            key,
        };
        // The event is level-triggered: the handle may still be ready.
        if let Some(wait) = self.waits.chosen() {
            wait.note_rest();
        }
        let origin = || poll.header.origin();
        self.dispatch(Phase::Poll, origin, || poll.callback.call());
        1
    }
}

/// Asks for the next event after the callback, even if it panics, on platforms that report each
/// event only once.
struct Rearm<'a> {
    core: &'a Core,
    poll: &'a PollState,
    key: usize,
}

impl Drop for Rearm<'_> {
    fn drop(&mut self) {
        let Self { core, poll, key } = *self;
        if NEEDS_REARM && poll.key.get() == Some(key) {
            // The error of a source that cannot be registered any more is dropped here; the next
            // start returns it.
            let _ = core
                .io
                .poller
                .change_level(poll.source, key, poll.events.get());
        }
    }
}
