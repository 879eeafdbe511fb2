//! The started poll handles of a loop: level-triggered, so the kernel tells of them again as long
//! as they are ready.
//!
//! Each start has a key of its own. An event of a handle that was stopped, closed or started anew
//! since it was reported finds none (R239).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use super::callback::CallbackSlot;
use super::core::Core;
use super::handles::{Header, Owner};
use crate::kinds::Phase;
use crate::sys::poller::{AsSource, Events, NEEDS_REARM, PollEvents, RawSource};

/// The bit that no source's key has.
const MARK: usize = 1 << (usize::BITS - 1);
/// Less than all other bits: the highest keys are the poller's and the watches'.
const NUMBERS: usize = MARK >> 1;

/// What a poll handle and the loop share.
pub(crate) struct PollState {
    pub(crate) header: Rc<Header>,
    pub(crate) callback: CallbackSlot,
    /// Open as long as the handle is there.
    source: RawSource,
    /// While it is started.
    key: Cell<Option<usize>>,
    events: Cell<PollEvents>,
    /// What the callback is called for.
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
        let owner = Rc::downgrade(&state);
        state.header.belongs_to(owner);
        state
    }

    /// What it is started for.
    pub(crate) fn events(&self) -> PollEvents {
        self.events.get()
    }

    /// For the callback: what it is called for.
    pub(crate) fn take_reported(&self) -> io::Result<PollEvents> {
        self.reported.take().unwrap_or(Ok(PollEvents::NONE))
    }
}

impl Owner for PollState {
    fn callback(&self) -> Option<&CallbackSlot> {
        Some(&self.callback)
    }

    fn shut(&self, core: &Core) {
        core.stop_poll(self);
        self.callback.clear();
    }
}

#[derive(Default)]
pub(crate) struct Polls {
    started: RefCell<BTreeMap<usize, Rc<PollState>>>,
    last: Cell<usize>,
}

impl Polls {
    fn next_key(&self) -> usize {
        let started = self.started.borrow();
        loop {
            let number = (self.last.get() + 1) % NUMBERS;
            self.last.set(number);
            let key = MARK | number;
            if !started.contains_key(&key) {
                return key;
            }
        }
    }

    fn get(&self, key: usize) -> Option<Rc<PollState>> {
        self.started.borrow().get(&key).cloned()
    }

    /// Takes the handle off the list. Returns whether it was there.
    fn forget(&self, poll: &PollState) -> bool {
        let key = poll.key.take();
        let removed = key.and_then(|key| self.started.borrow_mut().remove(&key));
        removed.is_some()
    }

    /// The loop is gone.
    pub(super) fn drain(&self) {
        drop(self.started.take());
    }
}

impl Core {
    /// Starts a poll handle, or changes what a started one waits for.
    pub(crate) fn start_poll(&self, poll: &Rc<PollState>, events: PollEvents) -> io::Result<()> {
        if events.is_empty() {
            self.stop_poll(poll);
            return Ok(());
        }
        let (was_started, key) = (self.polls.forget(poll), self.polls.next_key());
        let watched = if was_started {
            self.poller.change_level(poll.source, key, events)
        } else {
            self.poller.add_level(poll.source, key, events)
        };
        if let Err(error) = watched {
            if was_started {
                self.poller.remove(poll.source);
            }
            self.end_poll(poll);
            return Err(error);
        }
        poll.key.set(Some(key));
        poll.events.set(events);
        self.polls.started.borrow_mut().insert(key, poll.clone());
        self.set_active(&poll.header, true);
        Ok(())
    }

    /// After a fork: registers the started handles with the poller of this process.
    pub(super) fn register_polls_again(&self) -> io::Result<()> {
        let started = self.polls.started.borrow();
        started.iter().try_for_each(|(&key, poll)| {
            let events = poll.events.get();
            self.poller.add_level(poll.source, key, events)
        })
    }

    pub(crate) fn stop_poll(&self, poll: &PollState) {
        if self.polls.forget(poll) {
            self.poller.remove(poll.source);
        }
        self.end_poll(poll);
    }

    fn end_poll(&self, poll: &PollState) {
        poll.events.set(PollEvents::NONE);
        self.set_active(&poll.header, false);
    }

    /// Dispatches the next event, if it is one of a poll handle; returns how many callbacks that
    /// made.
    pub(super) fn run_poll_handle(&self, key: usize, events: &Events) -> usize {
        let poll = self.polls.get(key);
        let reported = poll.as_ref().map(|poll| events.reported(poll.events.get()));
        // Before the call: after a panic, the kernel reports it anew if it still holds.
        events.advance();
        let (Some(poll), Some(Some(reported))) = (poll, reported) else {
            return 0;
        };
        if reported.is_err() {
            // The error would be reported again and again (R238).
            self.stop_poll(&poll);
        }
        poll.reported.set(Some(reported));
        let _rearm = Rearm {
            core: self,
            poll: &poll,
            key,
        };
        self.dispatch(Phase::Poll, || poll.callback.call());
        1
    }
}

/// Asks for the next event after the callback, also after its panic, where each is reported once
/// only.
struct Rearm<'a> {
    core: &'a Core,
    poll: &'a PollState,
    key: usize,
}

impl Drop for Rearm<'_> {
    fn drop(&mut self) {
        let Self { core, poll, key } = *self;
        if NEEDS_REARM && poll.key.get() == Some(key) {
            // A source that cannot be watched any more is not reported; the next start says why.
            let _ = core
                .poller
                .change_level(poll.source, key, poll.events.get());
        }
    }
}
