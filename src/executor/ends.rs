//! The ends of tasks, and of the loop.

use super::Executor;
use crate::probe::Mode;
use crate::raw::call::Call;

/// The end of a task.
impl Executor {
    /// Removes a completed task from the registry. If it returns `true`, the caller calls
    /// [`forget_extras`](Self::forget_extras), too.
    #[inline]
    pub(crate) fn forget(&self, slot: u32) -> bool {
        self.tasks.remove(slot)
    }

    /// Forgets the name and the context of a completed task.
    pub(crate) fn forget_extras(&self, slot: u32) {
        let context = self.tasks.remove_extras(slot);
        if context.is_some() {
            self.let_go(context);
        }
    }
}

/// The end of the loop.
impl Executor {
    /// Refuses new tasks and closures from now on.
    pub(crate) fn close(&self) {
        self.probe.set(Mode::CLOSED, true);
    }

    /// Returns whether there are tasks that are not being polled. A task that is being polled
    /// cannot be dropped.
    pub(crate) fn has_idle_tasks(&self) -> bool {
        self.tasks.any(|slot| !self.is_polled(slot))
    }

    /// Schedules every task that is not scheduled. It runs no user code.
    pub(crate) fn wake_all(&self) {
        self.tasks.wake_all();
    }

    /// Takes the ticks and closures out of the lanes.
    pub(crate) fn take_calls(&self) -> [Vec<Call>; 2] {
        self.lanes.take_calls()
    }
}
