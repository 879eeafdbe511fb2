//! The registry of the live tasks of one loop, which wakes, aborts and lists them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::shared::Entry;
use crate::frame::Capture;
#[cfg(feature = "test-util")]
use crate::frame::Frame;
use crate::numbered::NumberedMap;
use crate::raw::slots::Slots;
use crate::task_info::{Id, Info};

/// The live tasks. Names and contexts are stored here, since few tasks have one; the rest of
/// [`Info`] is stored in the task itself.
pub(crate) struct Registry {
    pub(super) entries: Slots<Entry>,
    /// The names, by slot.
    names: RefCell<NumberedMap<u32, Rc<str>>>,
    /// What the tasks run in that are not being polled, by slot.
    contexts: RefCell<NumberedMap<u32, Capture>>,
    /// Whether a task ever had a name or a context.
    has_extras: Cell<bool>,
    /// The number of the next task or job.
    next_id: Cell<u64>,
    /// How many numbers were given to jobs.
    jobs: Cell<u64>,
    /// The number of tasks that were removed.
    ended: Cell<u64>,
}

/// A task and the wakers that a report needs.
pub(crate) struct TaskState {
    pub(crate) info: Info,
    /// `None` for a job of the pool.
    pub(crate) slot: Option<u32>,
    /// The data pointer of the task's wakers, or the address of a job.
    pub(crate) waker: *const (),
    /// The data pointer of the waker that awaits the task's output, if there is one.
    pub(crate) awaiter: Option<*const ()>,
}

impl Registry {
    pub(crate) fn new() -> Self {
        Self {
            entries: Slots::new(),
            names: RefCell::default(),
            contexts: RefCell::default(),
            has_extras: Cell::new(false),
            next_id: Cell::new(1),
            jobs: Cell::new(0),
            ended: Cell::new(0),
        }
    }

    /// Adds the task that `make` creates from a number and a slot. `make` must not use the
    /// registry; it runs no user code.
    #[inline]
    pub(crate) fn insert<T>(
        &self,
        name: Option<Rc<str>>,
        make: impl FnOnce(Id, u32) -> (Entry, T),
    ) -> T {
        let id = self.new_id();
        // The table is never longer.
        let slot = self.entries.next() as u32;
        let (task, made) = make(id, slot);
        self.entries.insert(task);
        if let Some(name) = name {
            self.has_extras.set(true);
            self.names.borrow_mut().insert(slot, name);
        }
        made
    }

    /// Returns a number for a job, which counts as a task.
    #[inline]
    pub(crate) fn new_job_id(&self) -> Id {
        self.jobs.set(self.jobs.get() + 1);
        self.new_id()
    }

    #[inline]
    fn new_id(&self) -> Id {
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        Id(id)
    }

    /// Removes a completed task. If it returns `true`, the caller removes the extras of the slot,
    /// too.
    #[inline]
    pub(crate) fn remove(&self, slot: u32) -> bool {
        self.entries.remove(slot as usize);
        self.ended.set(self.ended.get() + 1);
        self.has_extras.get()
    }

    /// Removes the name and the context of a completed task. The drop of the context is user code.
    // Not inlined: few programs name tasks or use contexts, and every end of a task asks.
    #[inline(never)]
    pub(crate) fn remove_extras(&self, slot: u32) -> Option<Capture> {
        self.names.borrow_mut().remove(&slot);
        self.take_context(slot)
    }

    /// Sets what a task runs in from its next poll on. Returns what it would have run in, whose
    /// drop is user code.
    pub(crate) fn set_context(&self, slot: u32, context: Capture) -> Option<Capture> {
        self.has_extras.set(true);
        self.contexts.borrow_mut().insert(slot, context)
    }

    /// Takes what a task runs in.
    pub(crate) fn take_context(&self, slot: u32) -> Option<Capture> {
        self.contexts.borrow_mut().remove(&slot)
    }

    /// Returns the tasks, except those that are being polled, whose frame meets a condition.
    #[cfg(feature = "test-util")]
    pub(crate) fn slots_in_context(&self, is_meant: &dyn Fn(&Frame) -> bool) -> Vec<u32> {
        let contexts = self.contexts.borrow();
        let of_frame = contexts
            .iter()
            .filter(|(_, context)| is_meant(&context.frame));
        of_frame.map(|(slot, _)| *slot).collect()
    }

    /// Schedules every task that is not scheduled. It runs no user code.
    pub(crate) fn wake_all(&self) {
        for task in self.entries.list() {
            task.wake();
        }
    }

    /// Returns a waker of the task at this place among the live ones.
    #[cfg(feature = "test-util")]
    pub(crate) fn waker_of_nth(&self, nth: usize) -> Option<std::task::Waker> {
        self.entries
            .list()
            .get(nth)
            .map(|task| task.counted_waker())
    }

    /// Schedules a task, if it is still alive and not scheduled. It runs no user code.
    #[cfg(feature = "stacks")]
    pub(crate) fn wake(&self, slot: u32, id: Id) {
        let task = self.entries.get(slot as usize);
        if let Some(task) = task.filter(|task| task.local().id == id) {
            task.wake();
        }
    }

    /// Marks a task, if it is still alive, to be dropped when the lane reaches it, and schedules
    /// it. It runs no user code.
    pub(crate) fn abort(&self, slot: u32, id: Id) {
        let task = self.entries.get(slot as usize);
        if let Some(task) = task.filter(|task| task.local().id == id) {
            task.abort();
        }
    }

    /// Returns the number of tasks that were added.
    pub(crate) fn spawned(&self) -> u64 {
        self.next_id.get() - 1 - self.jobs.get()
    }

    /// Returns the number of live tasks.
    pub(crate) fn len(&self) -> usize {
        (self.spawned() - self.ended.get()) as usize
    }

    /// Returns whether the slot of a task meets a condition.
    pub(crate) fn any(&self, condition: impl Fn(u32) -> bool) -> bool {
        let tasks = self.entries.list();
        tasks.iter().any(|task| condition(task.slot()))
    }

    /// Returns the number of the task in a slot.
    pub(crate) fn id(&self, slot: u32) -> Option<Id> {
        let task = self.entries.get(slot as usize);
        task.map(|task| task.local().id)
    }

    pub(crate) fn info(&self, slot: u32) -> Option<Info> {
        let task = self.entries.get(slot as usize);
        task.map(|task| self.info_of(&task))
    }

    /// Returns all tasks with their wakers.
    pub(crate) fn states(&self) -> Vec<TaskState> {
        let tasks = self.entries.list();
        let state = |task: &Entry| TaskState {
            info: self.info_of(task),
            slot: Some(task.slot()),
            waker: task.waker_data(),
            awaiter: task.awaiter_data(),
        };
        tasks.iter().map(state).collect()
    }

    fn info_of(&self, task: &Entry) -> Info {
        Info {
            id: task.local().id,
            site: task.local().site,
            name: self.names.borrow().get(&task.slot()).cloned(),
            of_loop: task.local().shared.index,
        }
    }
}
