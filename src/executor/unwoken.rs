//! Polls of tasks that nothing has woken, to find out where they wait; see `raw/stack_poll.rs`.

use super::shared::Runnable;
use super::{Executor, MAIN_FUTURE};
use crate::probe::Mode;
use crate::raw::stack_poll::{self, WaitPoint};
use crate::task_info::Id;

impl Executor {
    /// Polls the main future, if it waits, as [`places_of`](Self::places_of) does a task.
    pub(crate) fn places_of_main(&self) -> Vec<WaitPoint> {
        self.places_of(MAIN_FUTURE, Id::NONE)
    }

    /// Polls the main future, if it waits, as [`poll_untagged`](Self::poll_untagged) does a task.
    pub(crate) fn poll_main_untagged(&self) {
        self.poll_untagged(MAIN_FUTURE, Id::NONE);
    }

    /// Polls a task that waits, inside the caller, and returns its places. They have tags until
    /// [`poll_untagged`](Self::poll_untagged) is called.
    pub(crate) fn places_of(&self, slot: u32, id: Id) -> Vec<WaitPoint> {
        let Some(runnable) = self.take_unwoken(slot, id) else {
            return Vec::new();
        };
        let found = stack_poll::places(|| self.run_unwoken(runnable));
        if found.is_held_back {
            self.wake(slot, id);
        }
        found.places
    }

    /// Polls a task that waits once more, so that its places have its own waker again.
    pub(crate) fn poll_untagged(&self, slot: u32, id: Id) {
        let Some(runnable) = self.take_unwoken(slot, id) else {
            return;
        };
        let found = stack_poll::without_attempts(|| self.run_unwoken(runnable));
        if found.is_held_back {
            self.wake(slot, id);
        }
    }

    /// Returns the task in a slot as if it was woken, unless it is.
    fn take_unwoken(&self, slot: u32, id: Id) -> Option<Runnable> {
        if self.is_polled(slot) {
            return None;
        }
        self.probe.set(Mode::KEPT, true);
        self.wake(slot, id);
        self.probe.set(Mode::KEPT, false);
        self.kept.take()
    }

    /// Schedules a task or the main future, if it waits. It runs no user code.
    fn wake(&self, slot: u32, id: Id) {
        if slot == MAIN_FUTURE {
            self.wake_main();
        } else {
            self.tasks.wake(slot, id);
        }
    }

    /// Polls a task inside the caller, in the context of the task.
    fn run_unwoken(&self, runnable: Runnable) {
        let (slot, id) = (runnable.slot(), runnable.local().id);
        if slot == MAIN_FUTURE {
            return self.run_inside(|| {
                self.polled.set(slot);
                super::budget::begin_poll();
                self.run_task_guarded(runnable);
            });
        }
        let context = self.tasks.take_context(slot);
        let frame = context.as_ref().map(|context| context.frame.clone());
        let before = frame.unwrap_or_default().enter();
        self.run_inside(|| {
            self.polled.set(slot);
            super::budget::begin_poll();
            self.run_or_drop(runnable);
        });
        self.let_go(before.enter());
        // This poll does not decide what the task runs as in its next one.
        let before = match context {
            Some(context) if self.tasks.id(slot) == Some(id) => {
                self.tasks.set_context(slot, context)
            }
            context => context,
        };
        self.let_go(before);
    }
}
