//! Tasks that wake themselves while they are polled.
//!
//! `wake_by_ref(); Pending` is how a future of any crate gives way. In a lane that is drained to
//! its end it would give way to other tasks only: no timer and no I/O would ever run. So the tasks
//! of a loop may wake themselves 61 times in one drain, all together. Those that do so once more
//! are *late*: they wait for the next poll phase (`event_loop/io/late.rs`).
//!
//! Wakes between different tasks have no such limit, as in Node. Nor has a hop, by which a task
//! asks for the back of the lane: the hop brings the permission for its wake along.

use std::cell::{Cell, RefCell};

use super::Executor;
use super::shared::Runnable;

/// The number of times that tasks may wake themselves in one drain. It is also the number of polls
/// between two looks at the driver in tokio.
const SELF_WAKES_PER_DRAIN: i64 = 61;

/// The list of late tasks keeps room for so many.
const LARGE: usize = 1 << 16;

pub(super) struct SelfWakes {
    /// How many are left in this drain. It is negative only on the way to a late task.
    left: Cell<i64>,
    late: RefCell<Vec<Runnable>>,
    is_main_late: Cell<bool>,
}

impl SelfWakes {
    pub(super) fn new() -> Self {
        Self {
            left: Cell::new(SELF_WAKES_PER_DRAIN),
            late: RefCell::default(),
            is_main_late: Cell::new(false),
        }
    }

    /// Ends a drain: the next one has its own self-wakes.
    #[inline(always)]
    pub(super) fn end_drain(&self) {
        self.left.set(SELF_WAKES_PER_DRAIN);
    }

    /// Calls `poll` with self-wakes of its own: what is polled inside of its spawner is polled
    /// once.
    pub(super) fn apart<R>(&self, poll: impl FnOnce() -> R) -> R {
        let left = self.left.replace(SELF_WAKES_PER_DRAIN);
        let polled = poll();
        self.left.set(left);
        polled
    }
}

impl Executor {
    /// Takes one self-wake of this drain. Returns `false` if none is left.
    #[inline(always)]
    pub(crate) fn take_self_wake(&self) -> bool {
        let left = self.self_wakes.left.get() - 1;
        self.self_wakes.left.set(left);
        left >= 0
    }

    /// Returns whether the last self-wake was one too many, and forgets that.
    pub(crate) fn has_late_wake(&self) -> bool {
        let left = &self.self_wakes.left;
        let is_late = left.get() < 0;
        left.set(left.get().max(0));
        is_late
    }

    /// Permits one more self-wake in this drain: that of a hop.
    #[inline(always)]
    pub(crate) fn permit_self_wake(&self) {
        self.self_wakes.left.set(self.self_wakes.left.get() + 1);
    }

    /// Keeps a task until [`wake_late`](Self::wake_late). Returns whether it is the first one.
    pub(crate) fn keep_late(&self, runnable: Runnable) -> bool {
        let is_first = !self.has_late();
        self.self_wakes.late.borrow_mut().push(runnable);
        is_first
    }

    /// Keeps the wake of the main future until [`wake_late`](Self::wake_late). Returns whether it
    /// is the first one.
    pub(crate) fn keep_main_late(&self) -> bool {
        let is_first = !self.has_late();
        self.self_wakes.is_main_late.set(true);
        is_first
    }

    fn has_late(&self) -> bool {
        self.self_wakes.is_main_late.get() || !self.self_wakes.late.borrow().is_empty()
    }

    /// Queues the late tasks as microtasks, in their order. Returns whether the main future is
    /// late, too. It runs no user code.
    pub(crate) fn wake_late(&self) -> bool {
        let mut late = self.self_wakes.late.take();
        for runnable in late.drain(..) {
            if let Err(runnable) = self.try_push_task(runnable) {
                self.push_task(runnable);
            }
        }
        // The next ones find the room, unless it is that of a burst.
        late.shrink_to(LARGE);
        self.self_wakes.late.replace(late);
        self.self_wakes.is_main_late.take()
    }

    /// Calls `f` with each woken task, in the order of the lane; the late ones follow. `f` runs no
    /// user code.
    pub(crate) fn each_woken(&self, mut f: impl FnMut(&Runnable)) {
        self.lanes.each_task(&mut f);
        self.self_wakes.late.borrow().iter().for_each(f);
    }

    /// Takes the woken tasks out of the lane, in order, and the late ones.
    pub(crate) fn take_tasks(&self) -> Vec<Runnable> {
        let mut tasks = self.lanes.take_tasks();
        tasks.append(&mut self.self_wakes.late.borrow_mut());
        tasks
    }
}
