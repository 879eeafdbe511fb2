//! The sources that are deferred to the next poll phase: the task that reads or writes them has
//! used up the budget of its poll (`executor.rs`), or they are ready and no event says so.
// Marks: `cold`, since a poll that uses up its budget is rare.

use std::cell::RefCell;
use std::rc::Rc;

use super::Io;
use super::sources::{Direction, SourceState};
use crate::event_loop::core::Core;
use crate::event_loop::current;
use crate::event_loop::phases::queue::Entry;
use crate::executor::budget;
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::raw::call::Call;
use crate::raw::unwind::Steps;

#[derive(Default)]
pub(super) struct DeferredSources {
    sources: RefCell<Vec<(Rc<SourceState>, Direction)>>,
}

impl DeferredSources {
    pub(super) fn clear(&self) {
        drop(self.sources.take());
    }
}

impl Io {
    /// Returns whether a direction of a source is deferred.
    pub(crate) fn is_deferred(&self, source: &SourceState, direction: Direction) -> bool {
        let deferred = self.deferred.sources.borrow();
        deferred
            .iter()
            .any(|(one, other)| one.key == source.key && *other == direction)
    }
}

impl Core {
    /// Defers `source` because the budget is used up: it counts as not ready until the next poll
    /// phase. Returns `true` if no limit applies, and then defers nothing.
    #[cold]
    pub(crate) fn defer(&self, source: &Rc<SourceState>, direction: Direction) -> bool {
        if !self.executor.is_polling() || source.is_gone() {
            budget::begin_poll();
            return true;
        }
        budget::restore(0);
        self.resume_later(source, direction);
        false
    }

    /// Takes a direction of a source as not ready until the next poll phase, and as ready from then
    /// on.
    #[cold]
    pub(crate) fn resume_later(&self, source: &Rc<SourceState>, direction: Direction) {
        source.defer(direction);
        let mut deferred = self.io.deferred.sources.borrow_mut();
        if deferred.is_empty() {
            // The entry keeps the loop from sleeping, not from ending: a referenced wait for the
            // source keeps it alive.
            self.ledger.add_unref(Keeper::Queued);
            let resume = || current::if_any(Self::resume);
            let queue = self.phases.queue(Phase::Poll);
            queue.push(Entry::Unref(Call::new(resume)), None);
        }
        deferred.push((source.clone(), direction));
    }

    /// Marks the deferred sources as ready again. One callback serves all of them, so that a task
    /// that waits for several is polled once. A waker that panics keeps no other source from it.
    fn resume(&self) {
        self.ledger.remove_unref(Keeper::Queued);
        let mut wakes = Steps::default();
        for (source, direction) in self.io.deferred.sources.take() {
            if !source.is_gone() {
                source.add_ready(direction.ready());
                wakes.run(|| source.waiters(direction).wake_all());
                source.count_waits(self);
            }
        }
        wakes.end();
    }
}
