//! What a report has to know of waits: which task registered a waker of another library, which sets
//! of tasks are joined, and the waits that no handle of the loop stands for.
//!
//! A `FuturesUnordered` polls its futures with wakers of its own. Such a waker is noted, when it is
//! registered on the loop, with the task whose poll registered it. The waker of the task itself is
//! not noted, so that a program without such wakers pays for one comparison.
//!
//! A named wait is a wait for a promise, an event or a cancellation: its future notes it while it
//! is pending.
// Marks: `cold`: the waker of another library, noted for reports.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{self, Rc};
use std::sync::Weak;
use std::task::Waker;

use slab::Slab;

use super::Executor;
use super::primitives::Primitive;
use crate::noted::Noted;
use crate::numbered::NumberedMap;
use crate::site::Site;
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

/// What is waited for and shared with other threads, such as a channel between loops.
pub(crate) trait SharedWait {
    /// Adds what is waited for, with the data pointers of the wakers. It runs no user code.
    fn describe(&self, found: &mut Vec<(NamedWait, *const ())>);
}

#[derive(Default)]
pub(super) struct WaitNotes {
    /// What was polled when a foreign waker was registered, by the waker's data pointer.
    foreign: RefCell<NumberedMap<*const (), Polled>>,
    /// The number of notes at which those of gone wakers are removed.
    limit: Cell<usize>,
    sets: Noted<Weak<dyn TaskSet>>,
    /// What other threads share.
    shared: Noted<Weak<dyn SharedWait>>,
    /// Locks and channels.
    pub(super) primitives: Noted<rc::Weak<dyn Primitive>>,
    /// Made for the first named wait, so that a loop without one allocates nothing.
    named: OnceCell<Rc<NamedWaits>>,
}

impl Executor {
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
        if self.is_waker_of_main(waker) {
            return false;
        }
        let mut foreign = self.notes.foreign.borrow_mut();
        foreign.insert(data, polled);
        foreign.len() > self.notes.limit.get().max(FEW)
    }

    /// Forgets the foreign wakers whose data pointers are not in `registered`.
    pub(crate) fn forget_foreign(&self, registered: &SortedMap<usize, ()>) {
        let mut foreign = self.notes.foreign.borrow_mut();
        foreign.retain(|data, _| registered.get(data.addr()).is_some());
        self.notes.limit.set(foreign.len() * 2);
    }

    /// Returns what was polled when the foreign wakers were registered.
    #[inline]
    pub(crate) fn foreign_wakers(&self) -> NumberedMap<*const (), Polled> {
        self.notes.foreign.borrow().clone()
    }

    /// Returns the waits for what no handle of the loop stands for.
    #[inline]
    pub(crate) fn named_waits(&self) -> &Rc<NamedWaits> {
        self.notes.named.get_or_init(Rc::default)
    }

    /// Notes a set of tasks that is being waited for.
    pub(crate) fn note_set(&self, set: Weak<dyn TaskSet>) {
        self.notes.sets.add(set);
    }

    /// Notes what other threads share, and this loop is about to wait for.
    #[cold]
    pub(crate) fn note_shared(&self, wait: Weak<dyn SharedWait>) {
        self.notes.shared.add(wait);
    }

    /// Returns the waits for what other threads share, with the data pointers of their wakers.
    pub(crate) fn shared_waits(&self) -> Vec<(NamedWait, *const ())> {
        let mut found = Vec::new();
        for wait in self.notes.shared.live() {
            wait.describe(&mut found);
        }
        found
    }

    /// Returns the sets of tasks that are waited for: their wakers and their tasks.
    pub(crate) fn awaited_sets(&self) -> Vec<(*const (), Vec<Id>)> {
        let sets = self.notes.sets.live().into_iter();
        sets.filter_map(|set| Some((set.waiter()?, set.members())))
            .collect()
    }
}

/// What a task waits for.
#[derive(Clone, Debug)]
pub struct NamedWait {
    /// The kind: `promise`, `event`.
    pub what: &'static str,
    /// The name among others of the kind. It may be empty.
    pub which: &'static str,
    /// The name that the program gave it, which reports quote.
    pub name: Option<&'static str>,
    /// The line of the program that waits, if known.
    pub site: Option<Site>,
    /// Which tasks end the wait.
    pub source: Source,
}

impl NamedWait {
    /// Names a wait of which no source is known.
    pub fn new(what: &'static str, which: &'static str, site: Option<Site>) -> Self {
        Self {
            what,
            which,
            name: None,
            site,
            source: Source::Unknown,
        }
    }
}

/// Which tasks end a wait, as far as it is known.
#[derive(Clone, Debug, Default)]
pub enum Source {
    #[default]
    /// Nothing is known.
    Unknown,
    /// One task ends the wait.
    Task(Id),
    /// Several results are combined, and these tasks have some of them.
    Combined(Rc<Combined>),
    /// Another loop or thread ends the wait. The texts say which one of its kind it is, and its
    /// state.
    Elsewhere(String, String),
}

/// Several results that one function combines.
#[derive(Debug)]
pub struct Combined {
    /// The name of the function that combines them.
    pub how: &'static str,
    /// The tasks that have some of the results.
    pub tasks: Vec<Id>,
}

/// The named waits of a loop.
#[derive(Debug, Default)]
pub struct NamedWaits {
    list: RefCell<Slab<Entry>>,
    next_serial: Cell<u32>,
}

#[derive(Debug)]
struct Entry {
    wait: NamedWait,
    /// The data pointer of the waker that ends the wait.
    data: *const (),
    /// The waker itself, if it is kept here.
    waker: Option<Waker>,
    serial: u32,
}

/// Identifies a wait of the list. The serial number distinguishes it from a later one in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    place: u32,
    serial: u32,
}

impl NamedWaits {
    /// Adds a wait, and keeps the waker that ends it.
    pub fn park(&self, wait: NamedWait, waker: Waker) -> Key {
        self.insert(wait, waker.data(), Some(waker))
    }

    #[inline]
    fn insert(&self, wait: NamedWait, data: *const (), waker: Option<Waker>) -> Key {
        let serial = self.next_serial.get();
        self.next_serial.set(serial.wrapping_add(1));
        let entry = Entry {
            wait,
            data,
            waker,
            serial,
        };
        let place = self.list.borrow_mut().insert(entry);
        Key {
            place: u32::try_from(place).expect("fewer than 2^32 waits"),
            serial,
        }
    }

    fn with<R>(&self, key: Key, f: impl FnOnce(&mut Entry) -> R) -> Option<R> {
        let mut list = self.list.borrow_mut();
        let entry = list.get_mut(key.place as usize)?;
        (entry.serial == key.serial).then(|| f(entry))
    }

    /// Replaces the waker of a wait. Returns the one before, whose drop may run user code.
    pub fn set_waker(&self, key: Key, waker: Waker) -> Option<Waker> {
        let set = |entry: &mut Entry| {
            entry.data = waker.data();
            entry.waker.replace(waker)
        };
        self.with(key, set).flatten()
    }

    /// Takes the waker of a wait, which is about to end.
    pub fn take_waker(&self, key: Key) -> Option<Waker> {
        self.with(key, |entry| entry.waker.take()).flatten()
    }

    /// Removes a wait. Returns its waker, whose drop may run user code.
    pub fn remove(&self, key: Key) -> Option<Waker> {
        let mut list = self.list.borrow_mut();
        let is_it = |entry: &Entry| entry.serial == key.serial;
        if !list.get(key.place as usize).is_some_and(is_it) {
            return None;
        }
        list.remove(key.place as usize).waker
    }

    /// Returns the waits with the data pointers of their wakers.
    pub fn all(&self) -> Vec<(NamedWait, *const ())> {
        let list = self.list.borrow();
        let entries = list.iter().map(|(_, entry)| entry);
        entries
            .map(|entry| (entry.wait.clone(), entry.data))
            .collect()
    }
}

/// What one future waits for, and its place in the list while it waits. The drop ends the wait.
#[derive(Debug)]
pub struct WaitNote {
    what: &'static str,
    which: &'static str,
    name: Option<&'static str>,
    site: Option<Site>,
    listed: Option<(Rc<NamedWaits>, Key)>,
}

impl WaitNote {
    /// `site` is the line of the program that waits, if known.
    pub fn new(what: &'static str, which: &'static str, site: Option<Site>) -> Self {
        Self {
            what,
            which,
            name: None,
            site,
            listed: None,
        }
    }

    /// Sets the name among others of the kind, which reports quote.
    pub fn set_name(&mut self, name: &'static str) {
        self.name = Some(name);
    }

    /// Notes that the future is pending.
    pub fn begin(&mut self, waits: &Rc<NamedWaits>, waker: &Waker) {
        match &self.listed {
            Some((waits, key)) => _ = waits.with(*key, |entry| entry.data = waker.data()),
            None => {
                let wait = NamedWait {
                    name: self.name,
                    ..NamedWait::new(self.what, self.which, self.site)
                };
                let key = waits.insert(wait, waker.data(), None);
                self.listed = Some((waits.clone(), key));
            }
        }
    }

    /// Notes that the future is ready.
    pub fn end(&mut self) {
        if let Some((waits, key)) = self.listed.take() {
            waits.remove(key);
        }
    }
}

impl Drop for WaitNote {
    #[inline]
    fn drop(&mut self) {
        if self.listed.is_some() {
            self.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::task::Waker;

    use super::{NamedWait, NamedWaits, WaitNote};

    fn wait() -> NamedWait {
        NamedWait::new("event", "ready", None)
    }

    #[test]
    fn a_wait_is_listed_until_its_note_ends() {
        let waits = Rc::new(NamedWaits::default());
        let mut note = WaitNote::new("event", "ready", None);
        note.begin(&waits, Waker::noop());
        note.begin(&waits, Waker::noop());
        assert_eq!(waits.all().len(), 1);
        note.end();
        assert!(waits.all().is_empty());
        note.begin(&waits, Waker::noop());
        assert_eq!(waits.all().len(), 1);
        drop(note);
        assert!(waits.all().is_empty());
    }

    #[test]
    fn the_key_of_a_wait_that_has_ended_fits_no_later_one() {
        let waits = NamedWaits::default();
        let first = waits.park(wait(), Waker::noop().clone());
        assert!(waits.remove(first).is_some());
        let second = waits.park(wait(), Waker::noop().clone());
        assert!(waits.take_waker(first).is_none());
        assert!(waits.remove(first).is_none());
        assert!(waits.take_waker(second).is_some());
        assert!(waits.take_waker(second).is_none(), "it is taken once");
        assert_eq!(
            waits.all().len(),
            1,
            "the wait is listed until it is removed"
        );
    }
}
