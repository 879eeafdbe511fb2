//! How much I/O one poll of a task may do before the rest of the loop has its turn.
//!
//! A source that stays ready would otherwise keep a task inside one poll for ever: no timer, no other
//! connection and no hook would run. Each operation takes one of the poll's budget. When none is left,
//! the source counts as not ready until the next poll phase, where whoever waits for it is woken.
//!
//! Futures that are polled outside of a task, by a callback, have no budget: a callback ends by itself.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::core::{Core, NO_TASK};
use super::current;
use super::queue::Entry;
use super::sources::{Direction, SourceState};
use crate::kinds::Kind;
use crate::sys::call::Call;

/// How many operations one poll may do.
const OPERATIONS_PER_POLL: i32 = 128;

thread_local! {
    /// What is left to the poll that runs on this thread.
    static LEFT: Cell<i32> = const { Cell::new(0) };
}

/// A poll begins.
#[inline(always)]
pub(super) fn begin_poll() {
    LEFT.set(OPERATIONS_PER_POLL);
}

/// What is left to the running poll; [`restore`] gives it back after a poll inside of it.
#[cfg(feature = "node")]
pub(super) fn left() -> i32 {
    LEFT.get()
}

#[cfg(feature = "node")]
pub(super) fn restore(left: i32) {
    LEFT.set(left);
}

/// Takes one operation. `false`: none was left.
#[inline(always)]
pub(crate) fn take() -> bool {
    let left = LEFT.get() - 1;
    LEFT.set(left);
    left >= 0
}

/// Gives back what was taken for an operation that would have blocked.
pub(crate) fn give_back() {
    LEFT.set(LEFT.get() + 1);
}

/// The sources that were put off until the next poll phase.
#[derive(Default)]
pub(crate) struct PutOff {
    sources: RefCell<Vec<(Rc<SourceState>, Direction)>>,
}

impl PutOff {
    pub(super) fn clear(&self) {
        drop(self.sources.take());
    }
}

impl Core {
    /// No operation was left for `source`. `true`: there is no limit for it. Else it is put off: it counts as not ready
    /// until the next poll phase.
    #[cold]
    pub(crate) fn put_off(&self, source: &Rc<SourceState>, direction: Direction) -> bool {
        if self.polled.get() == NO_TASK || source.is_gone() {
            begin_poll();
            return true;
        }
        LEFT.set(0);
        source.put_off(direction);
        let mut put_off = self.put_off.sources.borrow_mut();
        if put_off.is_empty() {
            // The loop must not sleep on it. The wait for the source keeps the loop alive, if anything does.
            self.liveness.add_unref(Kind::Queued);
            let resume = || current::with(|core| core.map_or((), Self::resume));
            self.poll_queue.push(Entry::Unref(Call::new(resume)));
        }
        put_off.push((source.clone(), direction));
        false
    }

    /// The sources that were put off count as ready again. One callback for all of them: a task that waits for many is
    /// polled once.
    fn resume(&self) {
        self.liveness.remove_unref(Kind::Queued);
        for (source, direction) in self.put_off.sources.take() {
            if !source.is_gone() {
                source.add_ready(direction.ready());
                source.waiters(direction).wake_all();
                source.count_waits(self);
            }
        }
    }
}
