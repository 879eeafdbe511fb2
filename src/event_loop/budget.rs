//! The budget of I/O operations of one poll of a task.
//!
//! A source that stays ready would otherwise keep a task inside one poll for ever: no timer, no
//! other connection and no hook would run. Each operation takes one unit of the poll's budget. When
//! the budget is used up, the source is deferred: it counts as not ready until the next poll phase,
//! which wakes its waiters.
//!
//! A future that a callback polls outside of a task has no budget, since a callback ends by itself.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::core::{Core, NO_TASK};
use super::current;
use super::phases::queue::Entry;
use super::phases::sources::{Direction, SourceState};
use crate::keeper::Keeper;
use crate::raw::call::Call;

/// The number of operations that one poll may do.
const OPERATIONS_PER_POLL: i32 = 128;

thread_local! {
    /// The rest of the budget of the poll that runs on this thread.
    pub(super) static LEFT: Cell<i32> = const { Cell::new(0) };
}

/// Starts the budget of a poll.
#[inline(always)]
pub(super) fn begin_poll() {
    LEFT.set(OPERATIONS_PER_POLL);
}

/// Takes one operation from the budget. Returns `false` if it was used up.
#[inline(always)]
pub(crate) fn take() -> bool {
    let left = LEFT.get() - 1;
    LEFT.set(left);
    left >= 0
}

/// Returns the unit of an operation that would have blocked.
pub(crate) fn give_back() {
    LEFT.set(LEFT.get() + 1);
}

/// The sources that are deferred to the next poll phase.
#[derive(Default)]
pub(crate) struct DeferredSources {
    sources: RefCell<Vec<(Rc<SourceState>, Direction)>>,
}

impl DeferredSources {
    pub(super) fn clear(&self) {
        drop(self.sources.take());
    }
}

impl Core {
    /// Defers `source` because the budget is used up: it counts as not ready until the next poll
    /// phase. Returns `true` if no limit applies, and then defers nothing.
    #[cold]
    pub(crate) fn defer(&self, source: &Rc<SourceState>, direction: Direction) -> bool {
        if self.polled.get() == NO_TASK || source.is_gone() {
            begin_poll();
            return true;
        }
        LEFT.set(0);
        source.defer(direction);
        let mut deferred = self.deferred.sources.borrow_mut();
        if deferred.is_empty() {
            // The entry keeps the loop from sleeping, not from ending: a referenced wait for the
            // source keeps it alive.
            self.liveness.add_unref(Keeper::Queued);
            let resume = || current::with(|core| core.map_or((), Self::resume));
            self.poll_queue.push(Entry::Unref(Call::new(resume)));
        }
        deferred.push((source.clone(), direction));
        false
    }

    /// Marks the deferred sources as ready again. One callback serves all of them, so that a task
    /// that waits for several is polled once.
    fn resume(&self) {
        self.liveness.remove_unref(Keeper::Queued);
        for (source, direction) in self.deferred.sources.take() {
            if !source.is_gone() {
                source.add_ready(direction.ready());
                source.waiters(direction).wake_all();
                source.count_waits(self);
            }
        }
    }
}
