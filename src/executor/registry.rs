//! The live tasks of one loop: how to wake each of them, where it was spawned, whether it is to be aborted.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::Location;
use std::rc::Rc;
use std::task::Waker;

use slab::Slab;

/// Names a task among all tasks its loop ever had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(u64);

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What is known of a task: its number, its name, the line that spawned it.
///
/// Prints as `task 3 "reader" (src/main.rs:12:5)`.
#[derive(Clone, Debug)]
pub struct Info {
    id: Id,
    site: &'static Location<'static>,
    name: Option<Rc<str>>,
}

impl Info {
    /// The task's number.
    #[must_use]
    pub fn id(&self) -> Id {
        self.id
    }

    /// The name given by [`Builder::name`](crate::task::Builder::name), if any.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The line that spawned the task.
    #[must_use]
    pub fn spawned_at(&self) -> &'static Location<'static> {
        self.site
    }
}

impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {}", self.id)?;
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        write!(f, " ({})", self.site)
    }
}

/// Where one task of one loop is found: a slot, and the number that tells it from the slot's later tenants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskKey {
    pub(crate) slot: u32,
    pub(crate) id: Id,
}

pub(crate) struct Registry {
    entries: RefCell<Slab<Entry>>,
    next_id: Cell<u64>,
    /// How many entries have `aborted` set: the one thing looked at before each poll.
    aborts: Cell<usize>,
}

struct Entry {
    /// `None` for the moment between reserving the slot and making the task.
    waker: Option<Waker>,
    info: Info,
    aborted: bool,
}

impl Registry {
    pub(crate) fn new() -> Self {
        Self {
            entries: RefCell::new(Slab::new()),
            next_id: Cell::new(1),
            aborts: Cell::new(0),
        }
    }

    /// Makes an entry for a task that is about to be created.
    pub(crate) fn reserve(
        &self,
        site: &'static Location<'static>,
        name: Option<Rc<str>>,
    ) -> TaskKey {
        let id = Id(self.next_id.get());
        self.next_id.set(id.0 + 1);
        let slot = self.entries.borrow_mut().insert(Entry {
            waker: None,
            info: Info { id, site, name },
            aborted: false,
        });
        let slot = u32::try_from(slot).expect("fewer than 2^32 tasks are alive at once");
        TaskKey { slot, id }
    }

    /// Completes a reserved entry.
    pub(crate) fn fill(&self, slot: u32, waker: Waker) {
        if let Some(entry) = self.entries.borrow_mut().get_mut(slot as usize) {
            entry.waker = Some(waker);
        }
    }

    /// The task's future is gone.
    pub(crate) fn remove(&self, slot: u32) {
        let entry = self.entries.borrow_mut().remove(slot as usize);
        if entry.aborted {
            self.aborts.set(self.aborts.get() - 1);
        }
    }

    /// Marks the task; the caller wakes it with the returned waker. `None`: it is over or marked already.
    pub(crate) fn abort(&self, key: TaskKey) -> Option<Waker> {
        let mut entries = self.entries.borrow_mut();
        let entry = entries.get_mut(key.slot as usize)?;
        if entry.info.id != key.id || entry.aborted {
            return None;
        }
        entry.aborted = true;
        self.aborts.set(self.aborts.get() + 1);
        entry.waker.clone()
    }

    /// Whether the task about to be polled is to be dropped instead.
    pub(crate) fn is_aborted(&self, slot: u32) -> bool {
        self.aborts.get() != 0
            && self
                .entries
                .borrow()
                .get(slot as usize)
                .is_some_and(|entry| entry.aborted)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.borrow().len()
    }

    /// The wakers of all tasks, to end them with.
    pub(crate) fn wakers(&self) -> Vec<Waker> {
        let entries = self.entries.borrow();
        entries
            .iter()
            .filter_map(|(_, entry)| entry.waker.clone())
            .collect()
    }

    pub(crate) fn info(&self, slot: u32) -> Option<Info> {
        let entries = self.entries.borrow();
        entries.get(slot as usize).map(|entry| entry.info.clone())
    }

    /// Every task, oldest first.
    pub(crate) fn list(&self) -> Vec<Info> {
        let entries = self.entries.borrow();
        let mut list: Vec<_> = entries
            .iter()
            .map(|(_, entry)| entry.info.clone())
            .collect();
        list.sort_unstable_by_key(Info::id);
        list
    }
}
