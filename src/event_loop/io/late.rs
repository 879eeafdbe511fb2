//! The late tasks, which have woken themselves too often in one drain (`executor/self_wakes.rs`).
//! They go on in the next poll phase, after its I/O.
// Marks: `cold`: 61 self-wakes come before one of these.

use crate::event_loop::core::Core;
use crate::event_loop::current;
use crate::event_loop::phases::queue::Entry;
use crate::executor::lanes::Lane;
use crate::executor::shared::Runnable;
use crate::phase_order::Phase;
use crate::raw::call::Call;

impl Core {
    /// Lets a task that has woken itself wait for the next poll phase.
    #[cold]
    pub(in crate::event_loop) fn postpone(&self, runnable: Runnable) {
        self.executor.refuse_self_wake();
        if self.executor.keep_late(runnable) {
            self.queue_late();
        }
    }

    /// Queues a closure that polls again what has woken itself, and is no task: as a microtask, or
    /// for the next poll phase if the self-wakes of this drain are used up.
    pub(crate) fn poll_again(&self, poll: Call) {
        if self.executor.take_self_wake() {
            self.push_call(Lane::Microtasks, poll, None);
        } else {
            self.executor.refuse_self_wake();
            self.enqueue(Phase::Poll, Entry::Call(poll), None);
        }
    }

    /// Queues the entry that wakes them: one for all of them, so that together they have the
    /// self-wakes of one drain.
    #[inline]
    fn queue_late(&self) {
        let wake = || current::if_any(|core| core.executor.wake_late());
        self.enqueue(Phase::Poll, Entry::Call(Call::new(wake)), None);
    }
}
