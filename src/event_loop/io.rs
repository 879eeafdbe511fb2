//! The poll phase, and what it delivers: events of the kernel, messages of other threads, and what
//! comes after them (signals, exits of children, file changes).
//!
//! ```text
//!   poll_phase.rs   waits, then runs
//!     messages.rs     what other threads have sent, then async handles (asyncs.rs)
//!     events.rs       the events: sources (sources.rs, waiters.rs) and poll handles
//!     host.rs         the loop inside another one
//!     wait_hook.rs    another runtime inside the wait
//!     deferred.rs     sources whose task had used up its budget
//!     after_io.rs     file changes, signals, exits
//!     outside.rs      what a paused clock waits for in real time
//!   shuffled.rs     the wait of a loop whose order is shuffled by a test
//!   simulated.rs    the network in memory of such a loop
//! ```

mod after_io;
pub(crate) mod asyncs;
#[cfg(feature = "process")]
pub(crate) mod children;
pub(crate) mod connects;
mod deferred;
mod events;
mod host;
mod late;
mod messages;
#[cfg(any(test, feature = "test-util"))]
mod outside;
pub(crate) mod poll_handles;
mod poll_phase;
#[cfg(feature = "test-util")]
pub(crate) mod shuffled;
#[cfg(feature = "signal")]
pub(crate) mod signals;
#[cfg(feature = "test-util")]
pub(crate) mod simulated;
pub(crate) mod sources;
#[cfg(any(feature = "fs", feature = "signal"))]
mod subscribers;
pub(crate) mod wait_hook;
pub(crate) mod wait_list;
mod waiters;
#[cfg(feature = "fs")]
pub(crate) mod watches;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use self::after_io::AfterIoList;
use self::asyncs::Asyncs;
use self::connects::Connects;
use self::deferred::DeferredSources;
use self::host::Host;
#[cfg(any(test, feature = "test-util"))]
use self::outside::Outside;
use self::poll_handles::PollHandles;
#[cfg(feature = "test-util")]
use self::shuffled::Shuffled;
use self::sources::{SourceState, Sources};
use self::wait_hook::HookSlot;
use super::core::Core;
use crate::executor::message::Message;
use crate::executor::shared::Shared;
use crate::site::Site;
use crate::sys::poller::{BackendFd, Events, Poller};

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
    /// The messages taken from the inbox, the next one last.
    messages: RefCell<Vec<Message>>,
    asyncs: Asyncs,
    /// Signals, exits of children and file changes, which come last in the poll phase.
    after_io: AfterIoList,
    host: Host,
    hook: HookSlot,
    #[cfg(feature = "test-util")]
    shuffled: Option<Box<Shuffled>>,
    #[cfg(any(test, feature = "test-util"))]
    outside: Outside,
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
            messages: RefCell::default(),
            asyncs: Asyncs::new(),
            after_io: AfterIoList::default(),
            host: Host::default(),
            hook: HookSlot::default(),
            #[cfg(feature = "test-util")]
            shuffled: None,
            #[cfg(any(test, feature = "test-util"))]
            outside: Outside::default(),
        }
    }

    /// Returns whether a test shuffles the order of the loop.
    #[inline(always)]
    #[cfg_attr(
        not(feature = "test-util"),
        expect(clippy::unused_self, reason = "only tests shuffle a loop")
    )]
    fn is_shuffled(&self) -> bool {
        #[cfg(feature = "test-util")]
        return self.shuffled.is_some();
        #[cfg(not(feature = "test-util"))]
        false
    }

    /// Makes the waits of the loop those of a shuffled one.
    #[cfg(feature = "test-util")]
    pub(super) fn shuffle(&mut self, shuffled: Shuffled) {
        self.shuffled = Some(Box::new(shuffled));
    }

    /// Returns the registered sources.
    pub(super) fn sources(&self) -> Vec<Rc<SourceState>> {
        self.sources.list()
    }

    pub(super) fn backend_fd(&self) -> BackendFd<'_> {
        self.poller.backend_fd()
    }

    /// Returns whether a panic left events or messages that were not delivered.
    pub(super) fn was_interrupted(&self) -> bool {
        !self.events.borrow().is_empty()
            || !self.messages.borrow().is_empty()
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
        #[cfg(feature = "test-util")]
        if let Some(shuffled) = &self.shuffled {
            // Their drop runs user code.
            let programs = shuffled.wire.borrow_mut().take_programs();
            drop(programs);
        }
    }
}

impl Core {
    /// Returns whether a test shuffles the order of the loop.
    #[cfg(feature = "test-util")]
    pub(crate) fn is_shuffled(&self) -> bool {
        self.io.is_shuffled()
    }

    /// Notes that the program uses something that a shuffled run cannot repeat.
    #[inline]
    #[cfg_attr(
        not(feature = "test-util"),
        expect(clippy::unused_self, reason = "only tests shuffle a loop")
    )]
    #[allow(dead_code, reason = "not every feature reaches outside")]
    pub(crate) fn note_outside(&self, what: &'static str, site: Site) {
        #[cfg(feature = "test-util")]
        if let Some(shuffled) = &self.io.shuffled {
            shuffled.note_outside(what, site);
        }
        #[cfg(not(feature = "test-util"))]
        let _ = (what, site);
    }

    /// Returns whether a test holds back the signals that were caught.
    #[inline]
    #[cfg_attr(
        not(feature = "test-util"),
        expect(clippy::unused_self, reason = "only tests shuffle a loop")
    )]
    fn holds_signals(&self) -> bool {
        #[cfg(feature = "test-util")]
        return self
            .io
            .shuffled
            .as_ref()
            .is_some_and(|shuffled| self.still_holds_caught(shuffled));
        #[cfg(not(feature = "test-util"))]
        false
    }

    #[inline(always)]
    pub(crate) fn poller(&self) -> &Rc<Poller> {
        &self.io.poller
    }

    /// Makes the poller usable in the child process after a fork, and registers everything with it
    /// again. Without a fork it does nothing.
    pub(super) fn reinit_after_fork(&self) -> io::Result<()> {
        let io = &self.io;
        if !io.poller.is_inherited() {
            return Ok(());
        }
        if self.wait_hook().is_some() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "a loop that runs another runtime in its wait cannot go on in a child after a fork",
            ));
        }
        io.poller.reinit()?;
        self.forget_timer();
        io.asyncs.forget_sent();
        self.lose_jobs();
        let sources = io.sources.list();
        sources
            .iter()
            .try_for_each(|source| source.register_again(&io.poller))
            .and(self.register_poll_handles_again())
            .and(io.after_io.reinit_after_fork(self))
    }
}
