//! What a look from outside tells of a task.

use std::task::Waker;

use super::{Metadata, SCHEDULED, TaskRef};
use crate::sys::sync::Ordering;

/// The state of a task that is not closed.
pub(crate) struct TaskState {
    /// What the task's wakers point to.
    pub(crate) waker: *const (),
    /// What the waker of the one who awaits the task's output points to, if there is one.
    pub(crate) awaiter: Option<*const ()>,
    /// It was woken, and waits for its turn.
    pub(crate) is_scheduled: bool,
    /// It is being polled, or about to be.
    pub(crate) is_busy: bool,
}

impl<M: Metadata> TaskRef<M> {
    pub(crate) fn state(&self) -> TaskState {
        let header = self.header();
        // At home, as a `TaskRef` does not leave it.
        let awaiter = header.awaiter.take();
        let pointer = awaiter.as_ref().map(Waker::data);
        header.awaiter.set(awaiter);
        TaskState {
            waker: self.pointer.as_ptr().cast_const().cast(),
            awaiter: pointer,
            is_scheduled: header.state.load(Ordering::Relaxed) & SCHEDULED != 0,
            is_busy: header.busy.get(),
        }
    }
}
