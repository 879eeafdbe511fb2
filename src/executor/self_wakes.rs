//! Tasks that wake themselves while they are polled.
//!
//! `wake_by_ref(); Pending` is how a future of any crate gives way. In a lane that is drained to
//! its end it would give way to other tasks only: no timer and no I/O would ever run. So the tasks
//! of a loop may wake themselves 61 times in one drain, all together. Those that do so once more
//! are *late*: they wait for the next poll phase (`event_loop/io/late.rs`).
//!
//! Wakes between different tasks have no such limit, as in Node. Nor has a hop, by which a task
//! asks for the back of the lane: the hop brings the permission for its wake along.

use std::cell::{Cell, OnceCell};

use super::Executor;
use super::shared::Runnable;
use crate::raw::ring::Ring;

/// The number of times that tasks may wake themselves in one drain. It is also the number of polls
/// between two looks at the driver in tokio.
const SELF_WAKES_PER_DRAIN: i64 = 61;

/// The list of late tasks keeps room for so many.
const LARGE: usize = 1 << 16;

pub(super) struct SelfWakes {
    /// How many a drain has: as above, or none.
    per_drain: Cell<i64>,
    /// How many are left in this drain. It is negative only on the way to a late task.
    left: Cell<i64>,
    /// Created with the first one, since most loops have none.
    late: OnceCell<Ring<Runnable>>,
}

impl SelfWakes {
    pub(super) fn new() -> Self {
        Self {
            per_drain: Cell::new(SELF_WAKES_PER_DRAIN),
            left: Cell::new(SELF_WAKES_PER_DRAIN),
            late: OnceCell::new(),
        }
    }

    /// Ends a drain: the next one has its own self-wakes.
    #[inline]
    pub(super) fn end_drain(&self) {
        self.left.set(self.per_drain.get());
    }

    /// Makes every task that wakes itself a late one.
    pub(super) fn refuse_all(&self) {
        self.per_drain.set(0);
        self.left.set(0);
    }

    /// Calls `poll` with self-wakes of its own: what is polled inside of its spawner is polled
    /// once.
    pub(super) fn apart<R>(&self, poll: impl FnOnce() -> R) -> R {
        let left = self.left.replace(self.per_drain.get());
        let polled = poll();
        self.left.set(left);
        polled
    }

    pub(super) fn has_late(&self) -> bool {
        self.late.get().is_some_and(|late| late.rest() != 0)
    }
}

impl Executor {
    /// Takes one self-wake of this drain. If none is left, it returns `false`, and the caller calls
    /// [`refuse_self_wake`](Self::refuse_self_wake).
    #[inline]
    pub(crate) fn take_self_wake(&self) -> bool {
        let left = self.self_wakes.left.get() - 1;
        self.self_wakes.left.set(left);
        left >= 0
    }

    /// Forgets a self-wake that was not left: it is no debt, which a hop would have to pay.
    #[inline]
    pub(crate) fn refuse_self_wake(&self) {
        self.self_wakes.left.set(0);
    }

    /// Returns whether a task or the main future is late.
    #[allow(dead_code, reason = "asked for a hook only")]
    pub(crate) fn has_late(&self) -> bool {
        self.self_wakes.has_late()
    }

    /// Permits one more self-wake in this drain: that of a hop.
    #[inline]
    pub(crate) fn permit_self_wake(&self) {
        self.self_wakes.left.set(self.self_wakes.left.get() + 1);
    }

    /// Keeps a task until [`wake_late`](Self::wake_late). Returns whether it is the first one.
    #[inline]
    pub(crate) fn keep_late(&self, runnable: Runnable) -> bool {
        let is_first = !self.self_wakes.has_late();
        self.self_wakes.late.get_or_init(Ring::new).push(runnable);
        is_first
    }

    /// Queues the late tasks as microtasks, in their order. It runs no user code.
    #[inline]
    pub(crate) fn wake_late(&self) {
        if let Some(late) = self.self_wakes.late.get() {
            while let Some(runnable) = late.pop() {
                if let Err(runnable) = self.try_push_task(runnable) {
                    self.lanes.push_task(runnable);
                }
            }
            late.shrink(LARGE);
        }
    }

    /// Calls `f` with each woken task, in the order of the lane; the late ones follow. `f` runs no
    /// user code.
    pub(crate) fn each_woken(&self, mut f: impl FnMut(&Runnable)) {
        self.lanes.each_task(&mut f);
        if let Some(late) = self.self_wakes.late.get() {
            for runnable in late.take() {
                f(&runnable);
                late.push(runnable);
            }
        }
    }

    /// Takes the woken tasks out of the lane, in order, and the late ones.
    pub(crate) fn take_tasks(&self) -> Vec<Runnable> {
        let mut tasks = self.lanes.take_tasks();
        tasks.extend(self.self_wakes.late.get().into_iter().flat_map(Ring::take));
        tasks
    }
}
