//! How a loop waits in its poll phase.
//!
//! | way | file |
//! |---|---|
//! | the kernel: no [`Wait`] at all | `io/poll_phase.rs` |
//! | the paused clock, which jumps to the next deadline | `wait/paused.rs`, `wait/peers.rs` |
//! | another runtime inside the wait | `wait/hook.rs` |
//! | shuffled orders, and the network in memory | `shuffle/driver.rs` |
//!
//! A loop keeps its way for life, except that a paused clock takes the place of the kernel. A host
//! (`wait/host.rs`) is no way of its own: the loop that it drives asks the kernel, and does not
//! sleep.
//!
//! A new way is an implementor of [`Wait`] and a method of `Builder` that sets it. It fills the
//! batch of events ([`Core::ask_kernel`]); the poll phase dispatches them as ever.

pub(crate) mod hook;
pub(crate) mod host;
#[cfg(any(test, feature = "test-util"))]
mod paused;
#[cfg(any(test, feature = "test-util"))]
mod peers;

use std::any::Any;
use std::cell::OnceCell;
use std::io;
use std::rc::Rc;

use self::hook::WaitHook;
use self::host::Host;
#[cfg(any(test, feature = "test-util"))]
use self::paused::PausedClock;
use super::core::Core;
use super::io::sources::{Direction, SourceState};
use crate::executor::message::Message;
use crate::label::{Label, Role};
use crate::pool::Pool;
use crate::site::Site;

/// A way to wait, in place of the kernel.
pub(crate) trait Wait: Any {
    #[allow(dead_code, reason = "only ways to wait of tests are looked for")]
    fn as_any(&self) -> &dyn Any;

    /// Waits for events, and returns their number. `timeout` is in nanoseconds: zero for a look
    /// without a wait, [`NEVER`](crate::clock::NEVER) for a wait without an end. It calls
    /// [`Core::end_look`] or [`Core::waiting`], which keep the books.
    fn wait(&self, core: &Core, timeout: u64) -> io::Result<usize>;

    /// Decides about an attempt to read or write. `asked` is the number of bytes, if the attempt
    /// moves any. Returns how many it may move, or `None` if it has to wait for an event.
    fn attempt(
        &self,
        _core: &Core,
        _source: &SourceState,
        _direction: Direction,
        asked: Option<usize>,
    ) -> Option<usize> {
        Some(asked.unwrap_or(0))
    }

    /// Notes that an attempt to read or write is made.
    fn note_attempt(&self) {}

    /// Notes that the last wait has brought nothing, and that another one follows.
    fn note_quiet(&self) {}

    /// Notes that the poller may have events that do not make its descriptor readable anew.
    fn note_rest(&self) {}

    /// Notes that the program uses something outside of the loop.
    fn note_outside(&self, _what: &'static str, _site: Site) {}

    /// Returns whether the signals that were caught are held back.
    fn holds_signals(&self, _core: &Core) -> bool {
        false
    }

    /// Returns what reports say of a source without a descriptor.
    fn label(&self, _key: usize, _role: Role) -> Option<Label> {
        None
    }

    /// Returns the runtime that waits in place of the poller.
    fn runtime(&self) -> Option<&dyn WaitHook> {
        None
    }

    /// Returns the pool that takes the jobs of the loop in place of its own.
    fn pool(&self) -> Option<&Pool> {
        None
    }

    /// Takes the messages that are held back, when the loop is dropped.
    fn take_messages(&self) -> Vec<Message> {
        Vec::new()
    }

    /// Drops the user code that is held, when the loop is dropped.
    fn drop_user_code(&self) {}

    /// Ends the wait when the loop is dropped. `is_inherited` is whether this is a child after
    /// `fork`, whose kernel objects belong to the parent.
    fn shut_down(&self, _is_inherited: bool) {}
}

/// The way to wait of a new loop; `None` for the kernel.
pub(crate) type MadeWait = io::Result<Option<Box<dyn Wait>>>;

/// Creates the way to wait of a new loop.
pub(crate) type MakeWait = Box<dyn FnOnce(&Rc<Core>) -> MadeWait>;

/// How one loop waits.
#[derive(Default)]
pub(super) struct Waits {
    /// The way that the loop was made with, if it is not the kernel.
    chosen: OnceCell<Box<dyn Wait>>,
    #[cfg(any(test, feature = "test-util"))]
    paused: PausedClock,
    host: Host,
}

impl Core {
    /// Sets the way to wait of a new loop.
    ///
    /// # Errors
    ///
    /// What `make` returns.
    pub(super) fn set_wait(self: &Rc<Self>, make: MakeWait) -> io::Result<()> {
        if let Some(wait) = make(self)? {
            if wait.runtime().is_some() {
                self.io.note_after_wait();
            }
            let is_first = self.waits.chosen.set(wait).is_ok();
            debug_assert!(is_first, "a loop has one way to wait");
        }
        Ok(())
    }

    /// Returns the way that the loop was made with; `None` for the kernel.
    #[inline(always)]
    pub(crate) fn chosen_wait(&self) -> Option<&dyn Wait> {
        self.waits.chosen.get().map(|wait| &**wait)
    }

    /// Returns how the next wait is made; `None` for the kernel.
    #[inline(always)]
    pub(super) fn next_way(&self) -> Option<&dyn Wait> {
        #[cfg(any(test, feature = "test-util"))]
        if self.clock().is_paused() {
            return self.chosen_wait().or(Some(&self.waits.paused));
        }
        self.chosen_wait()
    }

    /// Decides about an attempt on a source whose attempts are [asked](SourceState::is_asked)
    /// about; see [`Wait::attempt`].
    #[cold]
    pub(crate) fn ask_attempt(
        &self,
        source: &SourceState,
        direction: Direction,
        asked: Option<usize>,
    ) -> Option<usize> {
        match self.next_way() {
            Some(way) => way.attempt(self, source, direction, asked),
            None => Some(asked.unwrap_or(0)),
        }
    }

    /// Notes an attempt on a source whose attempts are asked about.
    #[cold]
    pub(crate) fn note_attempt(&self, source: &SourceState) {
        #[cfg(any(test, feature = "test-util"))]
        self.waits.paused.peers.count_attempt(source.key);
        #[cfg(not(any(test, feature = "test-util")))]
        let _ = source;
        if let Some(way) = self.next_way() {
            way.note_attempt();
        }
    }

    /// Notes that the program uses something that a repeated run cannot repeat.
    #[allow(dead_code, reason = "not every feature reaches outside")]
    pub(crate) fn note_outside(&self, what: &'static str, site: Site) {
        if let Some(wait) = self.chosen_wait() {
            wait.note_outside(what, site);
        }
    }

    /// Returns whether the signals that were caught are held back.
    pub(super) fn holds_signals(&self) -> bool {
        self.chosen_wait()
            .is_some_and(|wait| wait.holds_signals(self))
    }

    /// Notes that two sources are the ends of a pair.
    #[allow(dead_code, reason = "not every platform has pairs")]
    #[cfg_attr(
        not(any(test, feature = "test-util")),
        expect(clippy::unused_self, reason = "only a paused clock has to know")
    )]
    pub(crate) fn note_pair(&self, one: &SourceState, other: &SourceState) {
        #[cfg(any(test, feature = "test-util"))]
        self.waits.paused.peers.note_pair(one.key, other.key);
        #[cfg(not(any(test, feature = "test-util")))]
        let _ = (one, other);
    }

    /// Returns whether attempts on new sources are asked about.
    #[inline(always)]
    pub(super) fn asks_about_attempts(&self) -> bool {
        cfg!(any(test, feature = "test-util")) && self.clock().is_paused()
    }
}
