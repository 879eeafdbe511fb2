//! Polls inside the guard of another runtime, whose futures expect its context in each poll:
//! a budget of its own, say.

use super::Executor;
use super::shared::Runnable;
use crate::probe::Mode;
use crate::raw::call::once;

/// Calls a poll in the context that the other runtime gives its own tasks.
pub(crate) type PollGuard = Box<dyn Fn(&mut dyn FnMut())>;

impl Executor {
    /// Lets another runtime surround each poll, and wait for its turn between a task's wake of
    /// itself and the next poll: to that runtime, such a wake may be a way to wait for its driver.
    #[allow(dead_code, reason = "only a feature above sets a guard")]
    pub(crate) fn set_poll_guard(&self, guard: PollGuard) {
        let is_first = self.poll_guard.set(guard).is_ok();
        debug_assert!(is_first, "a loop has one guard");
        self.probe.set(Mode::GUARDED, true);
        self.self_wakes.refuse_all();
    }

    /// Polls a task inside the guard, or drops it if it was aborted.
    pub(super) fn run_task_guarded(&self, runnable: Runnable) {
        let mut poll = once(|| self.run_task_reported(runnable));
        match self.poll_guard.get() {
            Some(guard) => guard(&mut poll),
            None => poll(),
        }
    }
}
