//! What a report has to know of waits that do not show the task: wakers of other libraries, and
//! sets of tasks.
//!
//! A `FuturesUnordered` polls its futures with wakers of its own. Such a waker is noted, when it is
//! registered on the loop, with the task whose poll registered it. The waker of the task itself is
//! not noted, so that a program without such wakers pays for one comparison.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Weak;
use std::task::Waker;

use super::Executor;
use super::named_waits::NamedWaits;
use crate::numbered::NumberedMap;
use crate::sorted::SortedMap;
use crate::task_info::Id;

/// The number of notes that are kept without a search for those that are out of date.
const FEW: usize = 1024;

/// What was polled when a waker was registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Polled {
    MainFuture,
    Task(Id),
}

/// A set of tasks, which are joined together.
pub(crate) trait TaskSet {
    /// Returns the data pointer of the waker that waits for any task of the set.
    fn waiter(&self) -> Option<*const ()>;

    /// Returns the tasks of the set. Some of them may have ended.
    fn members(&self) -> Vec<Id>;
}

#[derive(Default)]
pub(super) struct WaitNotes {
    /// What was polled when a foreign waker was registered, by the waker's data pointer.
    foreign: RefCell<NumberedMap<*const (), Polled>>,
    /// The number of notes at which those of gone wakers are removed.
    limit: Cell<usize>,
    sets: RefCell<Vec<Weak<dyn TaskSet>>>,
    /// Made for the first named wait, so that a loop without one allocates nothing.
    named: OnceCell<Rc<NamedWaits>>,
}

impl Executor {
    /// Returns whether the waker is that of the task that is being polled.
    #[inline(always)]
    pub(crate) fn is_of_polled_task(&self, waker: &Waker) -> bool {
        self.tasks.waker_data(self.polled.get()) == Some(waker.data())
    }

    /// Notes what is being polled for a waker that is not of the polled task. Returns whether it
    /// is time to [forget](Self::forget_foreign) the wakers that are gone.
    #[cold]
    pub(crate) fn note_foreign(&self, waker: &Waker) -> bool {
        let data = waker.data();
        if data.is_null() {
            // A waker without state, which wakes nothing. Others like it have this pointer, too.
            return false;
        }
        let polled = if self.polls_main_future() {
            Polled::MainFuture
        } else {
            match self.polled_id() {
                Some(id) => Polled::Task(id),
                None => return false,
            }
        };
        if self.main_info().is_some_and(|main| main.waker == data) {
            return false;
        }
        let mut foreign = self.wait_notes.foreign.borrow_mut();
        foreign.insert(data, polled);
        foreign.len() > self.wait_notes.limit.get().max(FEW)
    }

    /// Forgets the foreign wakers whose data pointers are not in `registered`.
    pub(crate) fn forget_foreign(&self, registered: &SortedMap<usize, ()>) {
        let mut foreign = self.wait_notes.foreign.borrow_mut();
        foreign.retain(|data, _| registered.get(data.addr()).is_some());
        self.wait_notes.limit.set(foreign.len() * 2);
    }

    /// Returns what was polled when the foreign wakers were registered.
    #[inline]
    pub(crate) fn foreign_wakers(&self) -> NumberedMap<*const (), Polled> {
        self.wait_notes.foreign.borrow().clone()
    }

    /// Returns the waits for what no handle of the loop stands for.
    #[inline(always)]
    pub(crate) fn named_waits(&self) -> &Rc<NamedWaits> {
        self.wait_notes.named.get_or_init(Rc::default)
    }

    /// Notes a set of tasks that is being waited for.
    pub(crate) fn note_set(&self, set: Weak<dyn TaskSet>) {
        let mut sets = self.wait_notes.sets.borrow_mut();
        if sets.len() == sets.capacity() {
            sets.retain(|set| set.strong_count() > 0);
        }
        sets.push(set);
    }

    /// Returns the sets of tasks that are waited for: their wakers and their tasks.
    pub(crate) fn awaited_sets(&self) -> Vec<(*const (), Vec<Id>)> {
        let sets = self.wait_notes.sets.borrow();
        let sets = sets.iter().filter_map(Weak::upgrade);
        sets.filter_map(|set| Some((set.waiter()?, set.members())))
            .collect()
    }
}
