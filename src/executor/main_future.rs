//! The main future of `block_on` and `run`. It is polled as a task is, but is not among the tasks:
//! it stays on the stack of its caller, from which it may borrow.

use std::task::{Context, Poll, Waker};

use super::shared::{Entry, Local, Runnable};
use super::{Executor, MAIN_FUTURE, NO_TASK};
use crate::probe::{Body, Origin};
use crate::raw::stock::Lent;
use crate::raw::task;
use crate::site::Site;
use crate::task_info::Id;

/// The main future while it is pending.
#[derive(Clone)]
pub(crate) struct MainInfo {
    /// The line that called `block_on` or `run`.
    pub(crate) site: Site,
    task: Entry,
}

impl MainInfo {
    /// Returns the data pointer of its wakers.
    pub(crate) fn waker(&self) -> *const () {
        self.task.waker_data()
    }
}

impl Executor {
    /// Makes `poll` the poll of the main future while `body` runs. `body` begins it.
    pub(crate) fn with_main_future<R>(
        &self,
        site: Site,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<()>,
        body: impl FnOnce() -> R,
    ) -> R {
        let local = Local {
            shared: Lent::new(&self.stock),
            id: Id::NONE,
            site,
        };
        let _context = self.begin_main_context();
        let mut poll = |cx: &mut Context<'_>| {
            self.main_polls.set(self.main_polls.get() + 1);
            // Else the drain resets it.
            let unwound = Unwound(self);
            let polled = poll(cx);
            std::mem::forget(unwound);
            polled
        };
        task::with_scoped(local, MAIN_FUTURE, &mut poll, |runnable, task| {
            self.main_start.set(Some(runnable));
            let main = Some(MainInfo { site, task });
            let _known = Known {
                executor: self,
                before: self.main_info.replace(main),
            };
            body()
        })
    }

    /// Queues the first poll of the main future.
    pub(crate) fn queue_main_future(&self) {
        if let Some(runnable) = self.main_start.take() {
            self.lanes.push_task(runnable);
        }
    }

    /// Makes the first poll of the main future, outside of the lanes.
    pub(crate) fn begin_main_future(&self) {
        if let Some(runnable) = self.main_start.take() {
            self.run_task(runnable);
            self.polled.set(NO_TASK);
        }
    }

    /// Polls the main future, while something watches the loop.
    // Not inlined: each poll of a task that is watched asks (row `self_wake/recorded`).
    #[inline(never)]
    pub(super) fn run_main_reported(&self, runnable: Runnable) {
        // An observer may panic, outside of the poll.
        let unwound = Unwound(self);
        let origin = Origin::at(Some(runnable.local().site));
        self.watching(Body::MainFuture, origin, || {
            self.in_main_context(|| self.run_or_drop_plainly(runnable));
        });
        std::mem::forget(unwound);
    }

    /// Returns whether the main future is being polled, here or further up the stack.
    pub(crate) fn is_in_main_future(&self) -> bool {
        self.is_polled(MAIN_FUTURE)
    }

    /// Forgets the main future, which has completed.
    pub(crate) fn end_main_future(&self) {
        self.main_info.replace(None);
    }

    /// Returns the main future, while it is pending.
    pub(crate) fn main_info(&self) -> Option<MainInfo> {
        self.main_info.borrow().clone()
    }

    /// Returns whether a waker is that of the main future.
    #[inline]
    pub(crate) fn is_waker_of_main(&self, waker: &Waker) -> bool {
        let main = self.main_info.borrow();
        main.as_ref()
            .is_some_and(|main| main.waker() == waker.data())
    }

    /// Schedules the main future, if it waits. It runs no user code.
    #[cfg(feature = "stacks")]
    pub(super) fn wake_main(&self) {
        if let Some(main) = self.main_info() {
            main.task.wake();
        }
    }
}

/// Marks a future as the main future; the drop restores the previous one.
struct Known<'a> {
    executor: &'a Executor,
    before: Option<MainInfo>,
}

impl Drop for Known<'_> {
    fn drop(&mut self) {
        self.executor.main_info.replace(self.before.take());
        // The caller may have panicked before the first poll.
        drop(self.executor.main_start.take());
    }
}

/// A panic of the main future, which leaves the drain; the drop forgets what was polled.
struct Unwound<'a>(&'a Executor);

impl Drop for Unwound<'_> {
    fn drop(&mut self) {
        self.0.polled.set(NO_TASK);
    }
}
