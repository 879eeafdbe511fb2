//! Another runtime inside the wait of the poll phase.
//!
//! A [`WaitHook`] waits for the descriptor of the poller in place of the poller, and runs its own
//! tasks meanwhile. The loop knows nothing else of that runtime.
#![allow(dead_code, reason = "only a feature above sets a hook")]

use std::cell::{Cell, OnceCell};
use std::io;
use std::rc::Rc;

use crate::event_loop::core::Core;
use crate::event_loop::current;
use crate::executor::guarded::PollGuard;
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::probe::Origin;
use crate::sys::poller::BATCH;

/// A loop that does not sleep visits the runtime of its hook once in this many turns. It is also
/// the number of task polls between two looks at the driver in tokio.
const TURNS_PER_VISIT: u32 = 61;

/// The longest time between two visits of a loop that does not sleep, in nanoseconds.
const VISIT_INTERVAL: u64 = 1_000_000;

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

/// Creates the hook of a new loop.
pub(crate) type MakeHook = fn(&Rc<Core>) -> io::Result<Box<dyn WaitHook>>;

#[derive(Default)]
pub(super) struct HookSlot {
    hook: OnceCell<Box<dyn WaitHook>>,
    /// Whether the poller may have events that do not make its descriptor readable anew.
    has_rest: Cell<bool>,
    /// Whether the last wait has brought nothing.
    was_quiet: Cell<bool>,
    /// The number of turns since the last visit, and its time.
    turns: Cell<u32>,
    last_visit: Cell<u64>,
}

impl Core {
    /// Sets the hook of a new loop.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the clock is paused; what `make` returns.
    pub(in crate::event_loop) fn set_wait_hook(self: &Rc<Self>, make: MakeHook) -> io::Result<()> {
        let hook = make(self)?;
        if self.clock().is_paused() {
            let text = cannot_pause(hook.name());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        self.executor.set_poll_guard(hook.poll_guard());
        let is_first = self.io.hook.hook.set(hook).is_ok();
        debug_assert!(is_first, "a loop has one hook");
        // The poll phase tests one flag for the hook and for the subscribers.
        self.io.after_io.note_use();
        Ok(())
    }

    #[inline(always)]
    pub(in crate::event_loop) fn wait_hook(&self) -> Option<&dyn WaitHook> {
        self.io.hook.hook.get().map(|hook| &**hook)
    }

    /// Returns whether tasks keep the loop alive that wait, or may wait, for the runtime of the
    /// hook: its own ones, and those of the loop.
    #[inline]
    pub(in crate::event_loop) fn is_kept_by_hook(&self) -> bool {
        self.wait_hook().is_some_and(|hook| {
            self.executor.main_info().is_some()
                || self.executor.task_count() > 0
                || hook.task_count() > 0
        })
    }

    /// Returns the number of tasks that keep the loop alive because of the hook.
    pub(in crate::event_loop) fn count_kept_by_hook(&self) -> usize {
        self.wait_hook().map_or(0, |hook| {
            let main = usize::from(self.executor.main_info().is_some());
            main + self.executor.task_count() + hook.task_count()
        })
    }

    /// # Panics
    ///
    /// If the loop has a hook, whose runtime has timers of its own.
    #[track_caller]
    pub(crate) fn check_pause(&self) {
        if let Some(hook) = self.wait_hook() {
            panic!("{}", cannot_pause(hook.name()));
        }
    }

    /// Waits inside the hook; `now` is the time. Returns whether the poller has to be asked for
    /// events.
    #[cold]
    pub(super) fn wait_in_hook(
        &self,
        hook: &dyn WaitHook,
        timeout: Option<u64>,
        now: u64,
    ) -> io::Result<bool> {
        self.io.poller.check_owner()?;
        let slot = &self.io.hook;
        let was_quiet = slot.was_quiet.take();
        if timeout == Some(0) {
            if self.is_visit_due() {
                hook.visit();
            }
            return Ok(true);
        }
        if slot.has_rest.take() {
            hook.visit();
            return Ok(true);
        }
        let until = timeout.map(|timeout| now.saturating_add(timeout));
        let is_due = hook.wait(self, now, until, was_quiet);
        slot.turns.set(0);
        Ok(is_due)
    }

    /// Notes that the poller may have more events, if the last batch was full.
    pub(super) fn note_full_batch(&self) {
        if self.io.events.borrow().len() == BATCH {
            self.note_rest();
        }
    }

    /// Notes that the poller may have events that do not make its descriptor readable anew: the
    /// hook sees edges only.
    pub(super) fn note_rest(&self) {
        self.io.hook.has_rest.set(true);
    }

    /// Notes that the last wait has brought nothing, and that another one follows.
    pub(super) fn note_quiet_wait(&self) {
        self.io.hook.was_quiet.set(true);
    }

    /// Drains the lanes after a wait in which the runtime of the hook has woken something. To the
    /// loop, the wait was a callback. Returns the number of callbacks.
    #[cold]
    pub(super) fn run_wakes_of_hook(&self) -> usize {
        let has_wakes = self.wait_hook().is_some() && !self.executor.are_lanes_empty();
        if has_wakes {
            self.dispatch(Phase::Poll, || Origin::new(Keeper::Runtime, None), || {});
        }
        usize::from(has_wakes)
    }

    /// Returns whether a turn that does not wait runs the hook: always if the caller of the turn
    /// does not want to wait, and now and then if the loop has work of its own.
    fn is_visit_due(&self) -> bool {
        let (slot, now) = (&self.io.hook, self.clock().now());
        let turns = slot.turns.get() + 1;
        slot.turns.set(turns);
        let is_due = turns >= TURNS_PER_VISIT
            || now.saturating_sub(slot.last_visit.get()) >= VISIT_INTERVAL
            // A task that has woken itself may wait for the driver of the runtime.
            || self.executor.has_late()
            || !self.has_work_now();
        if is_due {
            slot.turns.set(0);
            slot.last_visit.set(now);
        }
        is_due
    }

    /// Returns when the poll phase has to end: zero for at once, `None` for never.
    pub(crate) fn end_of_wait(&self, until: Option<u64>) -> Option<u64> {
        if self.has_work_now() {
            return Some(0);
        }
        let next = self.next_timer().map(|next| next.deadline);
        match (next, until) {
            (Some(next), Some(until)) => Some(next.min(until)),
            (next, until) => next.or(until),
        }
    }

    /// Ends the runtime of the hook when the loop is dropped.
    pub(in crate::event_loop) fn shut_down_hook(&self) {
        if let Some(hook) = self.wait_hook() {
            hook.shut_down(self.io.poller.is_inherited());
        }
    }
}

fn cannot_pause(runtime: &str) -> String {
    format!(
        "the clock of a loop with {runtime} cannot be paused: the timers of {runtime} run in real time; use a loop \
         without it, or keep the clock running"
    )
}

/// Calls `body` in the context of a hook, as a run of the loop or as code outside of one.
#[cold]
pub(super) fn in_context<R>(hook: &dyn WaitHook, is_run: bool, body: impl FnOnce() -> R) -> R {
    let (mut body, mut result) = (Some(body), None);
    let mut once = || {
        if let Some(body) = body.take() {
            result = Some(body());
        }
    };
    if is_run {
        hook.run(&mut once);
    } else {
        hook.enter(&mut once);
    }
    result.expect("a hook calls its argument")
}

/// Calls `f` with the current loop and its hook; for the callbacks of the hook's runtime, which
/// carry no state of one thread.
pub(crate) fn with_hook(f: impl FnOnce(&Core, &dyn WaitHook)) {
    current::with(|core| {
        if let Some((core, hook)) = core.and_then(|core| Some((core, core.wait_hook()?))) {
            f(core, hook);
        }
    });
}
