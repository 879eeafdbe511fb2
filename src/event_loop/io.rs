//! The poll phase, and what it delivers: events of the kernel, messages of other threads, and what
//! comes after them (signals, exits of children, file changes).
//!
//! ```text
//!   poll_phase.rs   waits, then runs
//!     messages.rs     what other threads have sent, then async handles (asyncs.rs)
//!     run_events      the events: sources (sources.rs, waiters.rs) and poll handles
//!     deferred.rs     sources whose task had used up its budget
//!     after_io.rs     file changes, signals, exits
//! ```
//!
//! `wait.rs` has the other ways to wait.

pub(crate) mod after_io;
pub(crate) mod asyncs;
pub(crate) mod connects;
mod deferred;
#[cfg(any(test, feature = "test-util"))]
mod inspect;
mod late;
mod messages;
pub(crate) mod poll_handles;
mod poll_phase;
#[cfg(feature = "signal")]
pub(crate) mod signals;
pub(crate) mod sources;
#[cfg(any(feature = "fs", feature = "signal"))]
pub(crate) mod subscribers;
pub(crate) mod waiters;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use self::after_io::AfterIoList;
use self::asyncs::Asyncs;
use self::connects::Connects;
use self::deferred::DeferredSources;
use self::messages::Taken;
use self::poll_handles::PollHandles;
use self::sources::{SourceState, Sources};
use super::core::Core;
use crate::executor::shared::Shared;
use crate::sys::poller::{Events, Poller, QueueFd};

pub(crate) struct Io {
    poller: Rc<Poller>,
    /// The events of the last wait.
    events: RefCell<Events>,
    sources: Sources,
    connects: Connects,
    poll_handles: PollHandles,
    deferred: DeferredSources,
    /// What other threads share, with their inbox.
    shared: Arc<Shared>,
    taken: Taken,
    asyncs: Asyncs,
    /// Signals, exits of children and file changes, which come last in the poll phase.
    after_io: AfterIoList,
}

impl Io {
    pub(super) fn new(poller: Poller, shared: Arc<Shared>) -> Self {
        Self {
            poller: Rc::new(poller),
            events: RefCell::new(Events::new()),
            sources: Sources::new(),
            connects: Connects::default(),
            poll_handles: PollHandles::default(),
            deferred: DeferredSources::default(),
            shared,
            taken: Taken::default(),
            asyncs: Asyncs::new(),
            after_io: AfterIoList::default(),
        }
    }

    #[inline]
    pub(crate) fn poller(&self) -> &Rc<Poller> {
        &self.poller
    }

    /// Returns the registered sources.
    pub(crate) fn sources(&self) -> Vec<Rc<SourceState>> {
        self.sources.list()
    }

    /// Returns the number of events of the last wait.
    #[inline]
    pub(crate) fn event_count(&self) -> usize {
        self.events.borrow().len()
    }

    /// Forgets the events of the last wait.
    pub(crate) fn clear_events(&self) {
        self.events.borrow_mut().clear();
    }

    /// Notes that something comes after each wait: the wakes of another runtime.
    pub(super) fn note_after_wait(&self) {
        self.after_io.note_use();
    }

    pub(crate) fn backend_fd(&self) -> QueueFd<'_> {
        self.poller.backend_fd()
    }

    /// Returns whether a panic left events or messages that were not delivered.
    pub(super) fn was_interrupted(&self) -> bool {
        !self.events.borrow().is_empty()
            || !self.taken.is_empty()
            || self.asyncs.any_sent()
            || self.after_io.was_interrupted()
    }

    /// Stops async handles, watches, signal listeners and children when the loop is dropped.
    pub(super) fn stop_subscribers(&self) {
        self.asyncs.clear();
        self.after_io.shut_down();
    }

    /// Ends all waits for sources when the loop is dropped.
    pub(super) fn stop_sources(&self, core: &Core) {
        self.poll_handles.drain();
        for source in self.sources.drain() {
            source.end_waits(core);
        }
    }

    /// Forgets the deferred sources when the loop is dropped.
    pub(super) fn forget_deferred(&self) {
        self.deferred.clear();
    }
}

impl Core {
    /// Makes the poller usable in the child process after a fork, and registers everything with it
    /// again. Without a fork it does nothing.
    pub(crate) fn reinit_after_fork(&self) -> io::Result<()> {
        let io = &self.io;
        if !io.poller.is_inherited() {
            return Ok(());
        }
        if self.waits.hook().is_some() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "a loop that runs another runtime in its wait cannot go on in a child after a fork",
            ));
        }
        io.poller.reinit()?;
        self.forget_timer();
        io.asyncs.forget_sent();
        self.ledger.lose_jobs();
        let sources = io.sources.list();
        sources
            .iter()
            .try_for_each(|source| source.register_again(&io.poller))
            .and(io.register_poll_handles_again())
            .and(io.after_io.reinit_after_fork(self))
    }
}
