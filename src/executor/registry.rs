//! The live tasks of one loop: a hold on each of them, and where it was spawned.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::rc::Rc;

use slab::Slab;

use super::spawn::{Meta, TaskRef};
use crate::sys::task::TaskState;

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

/// Eight bytes a task: what is known of it is in the task itself, but for its name, which few have.
pub(crate) struct Registry {
    tasks: RefCell<Slab<TaskRef>>,
    /// By slot.
    names: RefCell<HashMap<u32, Rc<str>>>,
    next_id: Cell<u64>,
}

impl Registry {
    pub(crate) fn new() -> Self {
        Self {
            tasks: RefCell::new(Slab::new()),
            names: RefCell::default(),
            next_id: Cell::new(1),
        }
    }

    /// Adds the task that `make` makes for the number and the slot it is given. `make` must not come back here: it runs no
    /// user code.
    pub(crate) fn insert<T>(
        &self,
        name: Option<Rc<str>>,
        make: impl FnOnce(Id, u32) -> (TaskRef, T),
    ) -> T {
        let id = Id(self.next_id.get());
        self.next_id.set(id.0 + 1);
        let mut tasks = self.tasks.borrow_mut();
        let vacant = tasks.vacant_entry();
        let slot = u32::try_from(vacant.key()).expect("fewer than 2^32 tasks are alive at once");
        let (task, made) = make(id, slot);
        vacant.insert(task);
        if let Some(name) = name {
            self.names.borrow_mut().insert(slot, name);
        }
        made
    }

    /// The task is over.
    pub(crate) fn remove(&self, slot: u32) {
        let task = self.tasks.borrow_mut().try_remove(slot as usize);
        if !self.names.borrow().is_empty() {
            self.names.borrow_mut().remove(&slot);
        }
        drop(task);
    }

    /// Takes all tasks out, to be cancelled.
    pub(crate) fn drain(&self) -> Vec<TaskRef> {
        let tasks = std::mem::take(&mut *self.tasks.borrow_mut());
        self.names.take();
        tasks.into_iter().map(|(_, task)| task).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.tasks.borrow().len()
    }

    /// The number of the task in a slot.
    pub(crate) fn id(&self, slot: u32) -> Option<Id> {
        let tasks = self.tasks.borrow();
        tasks.get(slot as usize).map(|task| task.metadata().id)
    }

    pub(crate) fn info(&self, slot: u32) -> Option<Info> {
        let tasks = self.tasks.borrow();
        tasks.get(slot as usize).map(|task| self.info_of(task))
    }

    /// Every task, oldest first.
    pub(crate) fn list(&self) -> Vec<Info> {
        let tasks = self.tasks.borrow();
        let mut list: Vec<_> = tasks.iter().map(|(_, task)| self.info_of(task)).collect();
        list.sort_unstable_by_key(Info::id);
        list
    }

    /// Every task with what is known of its state, oldest first.
    pub(crate) fn states(&self) -> Vec<(Info, TaskState)> {
        let tasks = self.tasks.borrow();
        let mut list: Vec<_> = tasks
            .iter()
            .map(|(_, task)| (self.info_of(task), task.state()))
            .collect();
        list.sort_unstable_by_key(|(info, _)| info.id());
        list
    }

    fn info_of(&self, task: &TaskRef) -> Info {
        let Meta { id, site, slot, .. } = task.metadata();
        Info {
            id: *id,
            site,
            name: self.names.borrow().get(slot).cloned(),
        }
    }
}
