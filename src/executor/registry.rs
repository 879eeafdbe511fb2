//! The live tasks of one loop: a hold on each of them, and where it was spawned.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::Location;
use std::rc::Rc;

use slab::Slab;

use super::spawn::TaskRef;

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
}

struct Entry {
    task: TaskRef,
    info: Info,
}

impl Registry {
    pub(crate) fn new() -> Self {
        Self {
            entries: RefCell::new(Slab::new()),
            next_id: Cell::new(1),
        }
    }

    /// Adds the task that `make` makes for the slot it is given. `make` must not come back here: it runs no user code.
    pub(crate) fn insert<T>(
        &self,
        site: &'static Location<'static>,
        name: Option<Rc<str>>,
        make: impl FnOnce(u32) -> (TaskRef, T),
    ) -> (TaskKey, T) {
        let id = Id(self.next_id.get());
        self.next_id.set(id.0 + 1);
        let mut entries = self.entries.borrow_mut();
        let vacant = entries.vacant_entry();
        let slot = u32::try_from(vacant.key()).expect("fewer than 2^32 tasks are alive at once");
        let (task, made) = make(slot);
        vacant.insert(Entry {
            task,
            info: Info { id, site, name },
        });
        (TaskKey { slot, id }, made)
    }

    /// The task is over.
    pub(crate) fn remove(&self, slot: u32) {
        let entry = self.entries.borrow_mut().try_remove(slot as usize);
        drop(entry);
    }

    /// Has the task dropped in its next turn, if it is not over.
    pub(crate) fn abort(&self, key: TaskKey) {
        let entries = self.entries.borrow();
        let entry = entries.get(key.slot as usize);
        // The wake goes to the lane or the inbox, which know nothing of the registry: the borrow is in nobody's way.
        if let Some(entry) = entry.filter(|entry| entry.info.id == key.id) {
            entry.task.abort();
        }
    }

    /// Takes all tasks out, to be cancelled.
    pub(crate) fn drain(&self) -> Vec<(Info, TaskRef)> {
        let entries = std::mem::take(&mut *self.entries.borrow_mut());
        let entries = entries.into_iter().map(|(_, entry)| entry);
        entries.map(|entry| (entry.info, entry.task)).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.borrow().len()
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
