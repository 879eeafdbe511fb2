//! Another runtime inside the wait of the poll phase.
//!
//! A [`WaitHook`] waits for the descriptor of the poller in place of the poller, and runs its own
//! tasks meanwhile. The loop knows nothing else of that runtime.
#![allow(dead_code, reason = "only a feature above sets a hook")]

use std::any::Any;
use std::cell::Cell;
use std::io;
use std::rc::Rc;

use crate::clock::NEVER;
use crate::event_loop::core::Core;
use crate::event_loop::current;
use crate::event_loop::wait::{MakeWait, Wait, WaitHook};
use crate::sys::poller::BATCH;

/// A loop that does not sleep visits the runtime of its hook once in this many turns. It is also
/// the number of task polls between two looks at the driver in tokio.
const TURNS_PER_VISIT: u32 = 61;

/// The longest time between two visits of a loop that does not sleep, in nanoseconds.
const VISIT_INTERVAL: u64 = 1_000_000;

/// Creates the hook of a new loop.
pub(crate) type MakeHook = fn(&Rc<Core>) -> io::Result<Box<dyn WaitHook>>;

/// The wait of a loop with a hook.
struct HookedWait {
    hook: Box<dyn WaitHook>,
    /// Whether the poller may have events that do not make its descriptor readable anew: the hook
    /// sees edges only.
    has_rest: Cell<bool>,
    /// Whether the last wait has brought nothing.
    was_quiet: Cell<bool>,
    /// The number of turns since the last visit, and its time.
    turns: Cell<u32>,
    last_visit: Cell<u64>,
}

/// Makes the way to wait of a loop with a hook.
pub(crate) fn wait_by(make: MakeHook) -> MakeWait {
    Box::new(move |core| {
        let hook = make(core)?;
        if core.executor.clock.is_paused() {
            let text = cannot_pause(hook.name());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        core.executor.set_poll_guard(hook.poll_guard());
        Ok(Some(Box::new(HookedWait {
            hook,
            has_rest: Cell::new(false),
            was_quiet: Cell::new(false),
            turns: Cell::new(0),
            last_visit: Cell::new(0),
        })))
    })
}

impl Wait for HookedWait {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn wait(&self, core: &Core, timeout: u64) -> io::Result<usize> {
        if timeout == 0 || !core.executor.shared.inbox.park() {
            return core.end_look(self.ask(core, Some(0), 0));
        }
        let timeout = (timeout != NEVER).then_some(timeout);
        core.waiting(timeout, false, |timeout, now| self.ask(core, timeout, now))
    }

    fn note_quiet(&self) {
        self.was_quiet.set(true);
    }

    fn note_rest(&self) {
        self.has_rest.set(true);
    }

    fn runtime(&self) -> Option<&dyn WaitHook> {
        Some(&*self.hook)
    }

    fn shut_down(&self, is_inherited: bool) {
        self.hook.shut_down(is_inherited);
    }
}

impl HookedWait {
    /// Waits inside the hook, and asks the kernel only if its descriptor has become readable.
    fn ask(&self, core: &Core, timeout: Option<u64>, now: u64) -> io::Result<()> {
        core.io.poller().check_owner()?;
        if self.is_poller_due(core, timeout, now) {
            core.ask_kernel(Some(0))?;
            if core.io.event_count() == BATCH {
                self.note_rest();
            }
        } else {
            core.io.clear_events();
        }
        Ok(())
    }

    /// Runs the hook; `now` is the time. Returns whether the poller has to be asked for events.
    fn is_poller_due(&self, core: &Core, timeout: Option<u64>, now: u64) -> bool {
        let was_quiet = self.was_quiet.take();
        if timeout == Some(0) {
            if self.is_visit_due(core) {
                self.hook.visit();
            }
            return true;
        }
        if self.has_rest.take() {
            self.hook.visit();
            return true;
        }
        let until = timeout.map(|timeout| now.saturating_add(timeout));
        let is_due = self.hook.wait(core, now, until, was_quiet);
        self.turns.set(0);
        is_due
    }

    /// Returns whether a turn that does not wait runs the hook: always if the caller of the turn
    /// does not want to wait, and now and then if the loop has work of its own.
    fn is_visit_due(&self, core: &Core) -> bool {
        let now = core.executor.clock.now();
        let turns = self.turns.get() + 1;
        self.turns.set(turns);
        let is_due = turns >= TURNS_PER_VISIT
            || now.saturating_sub(self.last_visit.get()) >= VISIT_INTERVAL
            // A task that has woken itself may wait for the driver of the runtime.
            || core.executor.has_late()
            || !core.has_work_now();
        if is_due {
            self.turns.set(0);
            self.last_visit.set(now);
        }
        is_due
    }
}

/// Returns when the poll phase has to end: zero for at once, `None` for never.
pub(crate) fn end_of_wait(core: &Core, until: Option<u64>) -> Option<u64> {
    if core.has_work_now() {
        return Some(0);
    }
    let next = core.phases.next_timer().map(|next| next.deadline);
    match (next, until) {
        (Some(next), Some(until)) => Some(next.min(until)),
        (next, until) => next.or(until),
    }
}

/// Returns the text of the error for a loop with a runtime whose clock is to be paused.
pub(super) fn cannot_pause(runtime: &str) -> String {
    format!(
        "the clock of a loop with {runtime} cannot be paused: the timers of {runtime} run in real time; use a loop \
         without it, or keep the clock running"
    )
}

/// Calls `f` with the current loop and its hook; for the callbacks of the hook's runtime, which
/// carry no state of one thread.
pub(crate) fn with_hook(f: impl FnOnce(&Core, &dyn WaitHook)) {
    current::with(|core| {
        if let Some((core, hook)) = core.and_then(|core| Some((core, core.waits.hook()?))) {
            f(core, hook);
        }
    });
}
