//! Locks and channels as reports see them: what is waited for, by whom, and who has it.
//!
//! A primitive that is waited for the first time is noted here; no wait is noted singly. A report
//! asks each one that is alive.
// Marks: each wait for a lock or a channel passes `task_key` (row `mutex_handover`); a primitive
// is added once.

use std::cell::Cell;
use std::rc::Weak;

use super::notes::Polled;
use super::{Executor, MAIN_FUTURE};
use crate::label::Label;
use crate::site::Site;
use crate::task_info::Id;

/// A task or the main future of a loop, among those of all loops. It is of no use but for
/// comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskKey {
    /// The address that identifies the loop, or null.
    of_loop: *const (),
    /// The number of the task, or zero for the main future.
    id: u64,
}

impl TaskKey {
    /// Of what is polled by no loop.
    pub(crate) const NONE: Self = Self {
        of_loop: std::ptr::null(),
        id: 0,
    };

    #[inline]
    pub(crate) fn is_none(self) -> bool {
        self.of_loop.is_null()
    }

    /// Returns the task or main future, if it is of this loop.
    pub(crate) fn of(self, executor: &Executor) -> Option<Polled> {
        if self.of_loop != executor.address() {
            return None;
        }
        Some(match self.id {
            0 => Polled::MainFuture,
            id => Polled::Task(Id(id)),
        })
    }
}

/// A call that uses a primitive: its line, and what was polled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) site: Site,
    pub(crate) task: TaskKey,
}

/// A lock or channel.
pub(crate) trait Primitive {
    /// Adds what is waited for. It runs no user code.
    fn describe(&self, found: &mut Vec<Described>);
}

/// What tasks wait for: a lock, or one side of a channel.
pub(crate) struct Described {
    pub(crate) label: Label,
    /// The line that made it.
    pub(crate) site: Site,
    /// Its state, as text: `16 of 16`.
    pub(crate) state: String,
    pub(crate) last: Option<LastUse>,
    /// Whether the last user alone ends the wait.
    pub(crate) is_held: bool,
    pub(crate) waiters: Vec<DescribedWaiter>,
}

/// The last use of a primitive.
pub(crate) struct LastUse {
    /// What was done: `taken`.
    pub(crate) verb: &'static str,
    /// The line, if known.
    pub(crate) site: Option<Site>,
    pub(crate) task: TaskKey,
}

/// One that waits for a primitive.
pub(crate) struct DescribedWaiter {
    /// The line that waits, if known, and what was polled.
    pub(crate) site: Option<Site>,
    pub(crate) task: TaskKey,
    /// The data pointer of the waker.
    pub(crate) waker: *const (),
    /// How many permits are asked for, if waiters differ in that.
    pub(crate) wants: Option<usize>,
}

impl Executor {
    /// Returns the address that identifies the loop.
    #[inline]
    fn address(&self) -> *const () {
        std::sync::Arc::as_ptr(&self.shared).cast()
    }

    /// Returns what is being polled.
    #[inline(always)]
    pub(crate) fn task_key(&self) -> TaskKey {
        let polled = self.polled.get();
        let id = match self.tasks.id(polled) {
            Some(id) => id.0,
            None if polled == MAIN_FUTURE => 0,
            None => return TaskKey::NONE,
        };
        let of_loop = self.address();
        TaskKey { of_loop, id }
    }

    /// Notes a primitive that is waited for, unless `noted` says that it is noted here. It runs no
    /// user code.
    #[inline]
    pub(crate) fn note_primitive(
        &self,
        noted: &Cell<*const ()>,
        primitive: impl FnOnce() -> Weak<dyn Primitive>,
    ) {
        if noted.get() != self.address() {
            noted.set(self.address());
            self.add_primitive(primitive());
        }
    }

    // One that is waited for on several loops in turn is noted again each time.
    #[inline(never)]
    fn add_primitive(&self, primitive: Weak<dyn Primitive>) {
        self.notes.primitives.add(primitive);
    }

    /// Returns what tasks wait for at locks and channels. It runs no user code.
    #[inline]
    pub(crate) fn described_primitives(&self) -> Vec<Described> {
        let mut found = Vec::new();
        for primitive in self.notes.primitives.live() {
            primitive.describe(&mut found);
        }
        found
    }
}
