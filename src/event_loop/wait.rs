//! How a loop waits in its poll phase.
//!
//! | way | file |
//! |---|---|
//! | the kernel: no [`Wait`] at all | `io/poll_phase.rs` |
//! | the paused clock, which jumps to the next deadline | `src/ways_to_wait/paused.rs` |
//! | another runtime inside the wait | `src/ways_to_wait/hook.rs` |
//! | shuffled orders, and the network in memory | `src/ways_to_wait/shuffled.rs` |
//!
//! A loop keeps its way for life, except that a paused clock takes the place of the kernel. A host
//! (`host.rs`) is no way of its own: the loop that it drives asks the kernel, and does not
//! sleep.
//!
//! A new way is an implementor of [`Wait`] and a method of `Builder` that sets it. It fills the
//! batch of events ([`Core::ask_kernel`]); the poll phase dispatches them as ever.
// Marks: `cold`, since a loop of a program waits in the kernel.

#![allow(
    dead_code,
    reason = "which ways there are, and what they need, depends on features and platform"
)]

use std::any::Any;
use std::cell::OnceCell;
use std::io;
use std::rc::Rc;

use super::core::Core;
use super::io::sources::{Direction, SourceState};
use crate::clock::Clock;
use crate::executor::Executor;
use crate::executor::guarded::PollGuard;
use crate::executor::message::Message;
use crate::keeper::Keeper;
use crate::label::{Label, Role};
use crate::phase_order::Phase;
use crate::pool::Pool;
use crate::probe::{Mode, Origin};
use crate::raw::call::once;
use crate::site::Site;

/// A way to wait, in place of the kernel.
pub(crate) trait Wait: Any {
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
    fn note_attempt(&self, _source: &SourceState) {}

    /// Notes that two sources are the ends of a pair.
    fn note_pair(&self, _one: &SourceState, _other: &SourceState) {}

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

/// A runtime that waits in place of the poller.
pub(crate) trait WaitHook {
    /// Returns the name of the runtime.
    fn name(&self) -> &'static str;

    /// Calls `body` in the context of the runtime.
    fn enter(&self, body: &mut dyn FnMut());

    /// Calls `body`, a run of the loop, as the runtime runs its own tasks: what would block the
    /// thread is refused.
    fn run(&self, body: &mut dyn FnMut());

    /// Returns what surrounds each poll of a task.
    fn poll_guard(&self) -> PollGuard;

    /// Runs the runtime until the loop has something to do; at most until `until`, a time of the
    /// loop's clock, which is at `now`. `was_quiet` is whether the wait before has brought nothing,
    /// so that no user code has run since. Returns whether the poller may have events.
    fn wait(&self, core: &Core, now: u64, until: Option<u64>, was_quiet: bool) -> bool;

    /// Runs what is ready in the runtime, without waiting.
    fn visit(&self);

    /// The runtime is about to sleep inside [`wait`](Self::wait).
    fn before_sleep(&self, core: &Core);

    /// The runtime has slept inside [`wait`](Self::wait).
    fn after_sleep(&self, core: &Core);

    /// Returns the number of tasks of the runtime, which keep the loop alive.
    fn task_count(&self) -> usize;

    /// Ends the runtime when the loop is dropped. In a child after `fork` it leaks instead: its
    /// kernel objects belong to the parent, too, and ending it would change them.
    fn shut_down(&self, is_inherited: bool);
}

/// How one loop waits.
#[derive(Default)]
pub(crate) struct Waits {
    /// The way that the loop was made with, if it is not the kernel.
    chosen: OnceCell<Box<dyn Wait>>,
    /// The way while the clock is paused, if none was chosen. Only tests pause a clock.
    paused: OnceCell<Box<dyn Wait>>,
}

impl Waits {
    /// Returns the way that the loop was made with; `None` for the kernel.
    #[inline]
    pub(crate) fn chosen(&self) -> Option<&dyn Wait> {
        self.chosen.get().map(|wait| &**wait)
    }

    /// Returns the way of the loop on a paused clock.
    #[inline]
    fn on_paused_clock(&self) -> Option<&dyn Wait> {
        self.chosen()
            .or_else(|| self.paused.get().map(|wait| &**wait))
    }

    /// Returns the runtime that waits in place of the poller.
    #[inline]
    pub(crate) fn hook(&self) -> Option<&dyn WaitHook> {
        self.chosen()?.runtime()
    }

    /// Returns how the next wait is made; `None` for the kernel. The poll phase asks only while
    /// [`Mode::OTHER_WAIT`] is set.
    #[cold]
    pub(super) fn next(&self, clock: &Clock) -> Option<&dyn Wait> {
        if clock.is_paused() {
            return self.on_paused_clock();
        }
        self.chosen()
    }

    /// Returns the number of tasks that keep the loop alive because of the hook: they wait, or may
    /// wait, for its runtime. These are its own ones, and those of the loop.
    #[inline]
    pub(super) fn keepers(&self, executor: &Executor) -> usize {
        self.hook().map_or(0, |hook| {
            let main = usize::from(executor.main_info().is_some());
            main + executor.tasks.len() + hook.task_count()
        })
    }

    /// Notes that the last wait has brought nothing, and that another one follows.
    #[cold]
    pub(super) fn note_quiet(&self) {
        if let Some(way) = self.chosen() {
            way.note_quiet();
        }
    }

    /// Notes an attempt on a source whose attempts are asked about.
    #[cold]
    pub(crate) fn note_attempt(&self, source: &SourceState) {
        if let Some(way) = self.on_paused_clock() {
            way.note_attempt(source);
        }
    }

    /// Notes that two sources are the ends of a pair.
    pub(crate) fn note_pair(&self, one: &SourceState, other: &SourceState) {
        if let Some(way) = self.on_paused_clock() {
            way.note_pair(one, other);
        }
    }

    /// Notes that the program uses something that a repeated run cannot repeat.
    pub(crate) fn note_outside(&self, what: &'static str, site: Site) {
        if let Some(wait) = self.chosen() {
            wait.note_outside(what, site);
        }
    }
}

impl Core {
    /// Sets the way to wait of a new loop.
    ///
    /// # Errors
    ///
    /// What `make` returns.
    pub(crate) fn set_wait(self: &Rc<Self>, make: MakeWait) -> io::Result<()> {
        if let Some(wait) = make(self)? {
            if wait.runtime().is_some() {
                self.io.note_after_wait();
            }
            let is_first = self.waits.chosen.set(wait).is_ok();
            debug_assert!(is_first, "a loop has one way to wait");
            self.executor.probe.set(Mode::OTHER_WAIT, true);
        }
        Ok(())
    }

    /// Sets the way of a loop whose clock may be paused.
    pub(crate) fn set_paused_wait(&self, wait: Box<dyn Wait>) {
        let is_first = self.waits.paused.set(wait).is_ok();
        debug_assert!(is_first, "a loop has one paused clock");
        self.executor.probe.set(Mode::OTHER_WAIT, true);
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
        match self.waits.next(&self.executor.clock) {
            Some(way) => way.attempt(self, source, direction, asked),
            None => Some(asked.unwrap_or(0)),
        }
    }

    /// Drains the lanes after a wait in which the runtime of the hook has woken something. To the
    /// loop, the wait was a callback. Returns the number of callbacks.
    #[cold]
    pub(crate) fn run_wakes_of_hook(&self) -> usize {
        let has_wakes = self.waits.hook().is_some() && !self.executor.lanes.is_empty();
        if has_wakes {
            self.dispatch(Phase::Poll, || Origin::new(Keeper::Runtime, None), || {});
        }
        usize::from(has_wakes)
    }
}

/// Calls `body` in the context of a hook, as a run of the loop or as code outside of one.
#[cold]
pub(super) fn in_context<R>(hook: &dyn WaitHook, is_run: bool, body: impl FnOnce() -> R) -> R {
    let mut result = None;
    {
        let mut body = once(|| result = Some(body()));
        if is_run {
            hook.run(&mut body);
        } else {
            hook.enter(&mut body);
        }
    }
    result.expect("a hook calls its argument")
}
