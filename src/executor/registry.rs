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

pub(crate) struct Registry {
    entries: RefCell<Slab<Entry>>,
    next_id: Cell<u64>,
}

struct Entry {
    task: TaskRef,
    site: &'static Location<'static>,
    name: Option<Rc<str>>,
}

impl Registry {
    pub(crate) fn new() -> Self {
        Self {
            entries: RefCell::new(Slab::new()),
            next_id: Cell::new(1),
        }
    }

    /// Adds the task that `make` makes for the number and the slot it is given. `make` must not come back here: it runs no
    /// user code.
    pub(crate) fn insert<T>(
        &self,
        site: &'static Location<'static>,
        name: Option<Rc<str>>,
        make: impl FnOnce(Id, u32) -> (TaskRef, T),
    ) -> T {
        let id = Id(self.next_id.get());
        self.next_id.set(id.0 + 1);
        let mut entries = self.entries.borrow_mut();
        let vacant = entries.vacant_entry();
        let slot = u32::try_from(vacant.key()).expect("fewer than 2^32 tasks are alive at once");
        let (task, made) = make(id, slot);
        vacant.insert(Entry { task, site, name });
        made
    }

    /// The task is over.
    pub(crate) fn remove(&self, slot: u32) {
        let entry = self.entries.borrow_mut().try_remove(slot as usize);
        drop(entry);
    }

    /// Takes all tasks out, to be cancelled.
    pub(crate) fn drain(&self) -> Vec<TaskRef> {
        let entries = std::mem::take(&mut *self.entries.borrow_mut());
        entries.into_iter().map(|(_, entry)| entry.task).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.borrow().len()
    }

    pub(crate) fn info(&self, slot: u32) -> Option<Info> {
        let entries = self.entries.borrow();
        entries.get(slot as usize).map(Entry::info)
    }

    /// Every task, oldest first.
    pub(crate) fn list(&self) -> Vec<Info> {
        let entries = self.entries.borrow();
        let mut list: Vec<_> = entries.iter().map(|(_, entry)| entry.info()).collect();
        list.sort_unstable_by_key(Info::id);
        list
    }
}

impl Entry {
    fn info(&self) -> Info {
        Info {
            id: self.task.metadata().id,
            site: self.site,
            name: self.name.clone(),
        }
    }
}
