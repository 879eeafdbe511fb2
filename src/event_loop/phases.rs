//! What waits for the phases: queues, hooks, timers and closes, one structure in each file, and the
//! passes over them (`run_timers`, `run_closing`, `run_hooks`, `run_queue`). A structure returns
//! one entry at a time and runs no user code; the pass hands the entry to `Core::dispatch`.
//!
//! What waits for events of the kernel is in `io.rs`.
// Marks: a constant phase selects its field at compile time (row `immediates`).

pub(crate) mod callback;
mod closing;
pub(crate) mod hooks;
pub(crate) mod queue;
pub(crate) mod timers;

use std::cell::RefCell;
use std::task::Waker;

use self::closing::Closing;
use self::hooks::Hooks;
use self::queue::{Entry, PhaseQueue, QueueKey};
use self::timers::Payload;
use self::timers::heap::TimerHeap;
use super::core::Core;
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::raw::unwind::Steps;
use crate::site::Site;

#[derive(Default)]
pub(crate) struct Phases {
    pending: PhaseQueue,
    idle: HookedPhase,
    prepare: HookedPhase,
    /// Entries that run in the poll phase without an event of the kernel.
    poll: PhaseQueue,
    check: HookedPhase,
    closing: Closing,
    closing_queue: PhaseQueue,
    timers: RefCell<TimerHeap<Payload>>,
    timers_queue: PhaseQueue,
}

/// Idle, prepare or check: the hooks, which run in every turn, and the queue of entries that run
/// once (for check, the immediates).
#[derive(Default)]
struct HookedPhase {
    hooks: Hooks,
    queue: PhaseQueue,
}

impl Phases {
    /// Returns the queue of a phase.
    // Inlined, so that a constant phase costs nothing.
    #[inline(always)]
    pub(crate) fn queue(&self, phase: Phase) -> &PhaseQueue {
        match phase {
            Phase::Pending => &self.pending,
            Phase::Idle => &self.idle.queue,
            Phase::Prepare => &self.prepare.queue,
            Phase::Poll => &self.poll,
            Phase::Check => &self.check.queue,
            Phase::Closing => &self.closing_queue,
            Phase::Timers => &self.timers_queue,
        }
    }

    /// Returns idle, prepare or check.
    #[inline(always)]
    fn hooked(&self, phase: Phase) -> &HookedPhase {
        match phase {
            Phase::Idle => &self.idle,
            Phase::Prepare => &self.prepare,
            _ => &self.check,
        }
    }

    /// Returns zero if a phase has nothing to run: no hook, timer or close, and no entry.
    // One function for all phases, and a number: the bitwise or of several phases is one branch.
    #[inline(always)]
    pub(super) fn load(&self, phase: Phase) -> usize {
        let of_hooked = |it: &HookedPhase| it.hooks.len.get() | it.queue.len.get();
        match phase {
            Phase::Pending => self.pending.len.get(),
            Phase::Idle => of_hooked(&self.idle),
            Phase::Prepare => of_hooked(&self.prepare),
            Phase::Poll => self.poll.len.get(),
            Phase::Check => of_hooked(&self.check),
            Phase::Closing => {
                usize::from(self.closing.has_some.get()) | self.closing_queue.len.get()
            }
            Phase::Timers => {
                let timers = self.timers.borrow();
                timers.heap.len() | timers.ready.len() | self.timers_queue.len.get()
            }
        }
    }

    /// Returns whether a panic left closes that were not delivered.
    pub(super) fn was_closing_interrupted(&self) -> bool {
        self.closing.was_interrupted()
    }

    /// Stops all timers when the loop is dropped. The wakers of sleeps go to `waiting`.
    pub(super) fn stop_timers(&self, waiting: &mut Vec<Waker>) {
        let timers = self.timers.borrow_mut().drain();
        for payload in timers {
            match payload {
                Payload::Timer(timer) => timer.armed.set(None),
                Payload::Sleep { waker, .. } => waiting.push(waker),
            }
        }
    }

    /// Stops all hooks when the loop is dropped.
    pub(super) fn stop_hooks(&self) {
        for phase in [&self.idle, &self.prepare, &self.check] {
            if phase.hooks.len.get() != 0 {
                phase.hooks.clear();
            }
        }
    }

    /// Empties the queues when the loop is dropped. The wakers in them go to `waiting`.
    pub(super) fn clear_queues(&self, waiting: &mut Vec<Waker>, steps: &mut Steps) {
        for queue in [
            &self.pending,
            &self.idle.queue,
            &self.prepare.queue,
            &self.check.queue,
            &self.closing_queue,
            &self.poll,
            &self.timers_queue,
        ] {
            // Most are empty: a short-lived loop pays for what it has used.
            if !queue.is_empty() {
                for entry in queue.drain() {
                    steps.run(|| waiting.extend(entry.into_waker()));
                }
            }
        }
    }

    /// Returns the hooks of idle, prepare or check.
    pub(crate) fn hooks(&self, phase: Phase) -> &Hooks {
        &self.hooked(phase).hooks
    }

    /// Returns whether an entry keeps the loop alive, or `None` if it has run.
    pub(crate) fn is_entry_referenced(&self, phase: Phase, key: QueueKey) -> Option<bool> {
        self.queue(phase).is_referenced(key)
    }

    pub(crate) fn set_entry_waker(&self, phase: Phase, key: QueueKey, waker: &Waker) -> bool {
        self.queue(phase).set_waker(key, waker)
    }
}

/// Entries that wait for a phase.
impl Core {
    /// Queues an entry. `site` is the line that queues it, if known.
    // Inlined, so that the entry is written to its place and not copied on the way.
    #[inline(always)]
    pub(crate) fn enqueue(&self, phase: Phase, entry: Entry, site: Option<Site>) -> QueueKey {
        self.ledger.add(Keeper::Queued);
        self.phases.queue(phase).push(entry, site)
    }

    pub(crate) fn dequeue(&self, phase: Phase, key: QueueKey) -> bool {
        let entry = self.phases.queue(phase).remove(key);
        if let Some(entry) = &entry {
            self.uncount_entry(entry);
        }
        // Dropping a waker or a closure may run user code; nothing is borrowed here.
        entry.is_some()
    }

    /// Updates liveness for an entry that has left its queue.
    #[inline]
    pub(super) fn uncount_entry(&self, entry: &Entry) {
        if entry.is_referenced() {
            self.ledger.remove(Keeper::Queued);
        }
    }

    /// Sets whether an entry keeps the loop alive. It has no effect once the entry has run.
    pub(crate) fn set_entry_referenced(&self, phase: Phase, key: QueueKey, referenced: bool) {
        if self.phases.queue(phase).set_referenced(key, referenced) {
            self.ledger.change(Keeper::Queued, referenced);
        }
    }
}
