//! The two lanes: ticks and microtasks.
//!
//! ```text
//! drain:  ┌─> all ticks ─> all microtasks ─┐   new entries join their lane;
//!         └────── while ticks remain ──────┘   the drain ends when both are empty
//! ```
//!
//! The lanes are pure data: the caller pops an entry and runs it, and no borrow is held meanwhile.

use std::cell::Cell;

use crate::raw::call::Call;
use crate::raw::ring::Ring;

/// A lane that was longer than this releases its memory when it is empty, so that a burst does not
/// keep it for ever.
const LARGE: usize = 1 << 16;

/// An entry of the microtask lane.
pub(crate) enum Microtask<R> {
    /// A woken task, to be polled once.
    Task(R),
    /// A queued closure. A closure without captures, such as the one that polls the main future,
    /// needs no allocation.
    Call(Call),
}

/// Both lanes of one loop. `R` is a woken task.
pub(crate) struct Lane<R> {
    ticks: Ring<Call>,
    /// The microtasks in order: a task, or `None` for the next of `calls`. An entry takes one word,
    /// since most are tasks.
    microtasks: Ring<Option<R>>,
    calls: Ring<Call>,
    /// Whether the next woken task goes to `caught`; see [`catch_task`](Self::catch_task).
    catches: Cell<bool>,
    /// The task that was woken, on its way to the caller of `catch_task`.
    caught: Cell<Option<R>>,
}

impl<R> Lane<R> {
    pub(crate) fn new() -> Self {
        Self {
            ticks: Ring::new(),
            microtasks: Ring::new(),
            calls: Ring::new(),
            catches: Cell::new(false),
            caught: Cell::new(None),
        }
    }

    #[inline]
    pub(crate) fn push_tick(&self, call: Call) {
        self.ticks.push(call);
    }

    /// Queues a closure as a microtask.
    #[inline]
    pub(crate) fn push_call(&self, call: Call) {
        self.calls.push(call);
        self.microtasks.push(None);
    }

    /// Queues a woken task as a microtask.
    #[inline]
    pub(crate) fn push_task(&self, task: R) {
        self.microtasks.push(Some(task));
    }

    /// Queues a woken task, or returns it if the lane must grow first. This keeps the common path
    /// free of calls.
    #[inline(always)]
    pub(crate) fn try_push_task(&self, task: R) -> Result<(), R> {
        if self.catches.get() {
            self.catches.set(false);
            // The slot is empty, and its content need not be dropped.
            std::mem::forget(self.caught.replace(Some(task)));
            return Ok(());
        }
        let pushed = self.microtasks.try_push(Some(task));
        pushed.map_err(|task| task.expect("what was pushed comes back"))
    }

    /// Calls `wake`. If that wakes a task and queues nothing else, and the lanes were empty before,
    /// the task is returned: its way through the lane is saved. Otherwise what `wake` queued is in
    /// the lanes.
    #[inline(always)]
    pub(crate) fn catch_task(&self, wake: impl FnOnce()) -> Option<R> {
        struct Uncaught<'a, R>(&'a Lane<R>);
        impl<R> Drop for Uncaught<'_, R> {
            fn drop(&mut self) {
                self.0.catches.set(false);
                if let Some(task) = self.0.caught.take() {
                    self.0.push_first(task);
                }
            }
        }

        self.catches.set(self.is_empty());
        // A panic of the wake must not leave the task in the slot.
        let uncaught = Uncaught(self);
        wake();
        std::mem::forget(uncaught);
        self.catches.set(false);
        let task = self.caught.take()?;
        if self.is_empty() {
            return Some(task);
        }
        self.push_first(task);
        None
    }

    /// Queues a task before all other microtasks.
    #[cold]
    fn push_first(&self, task: R) {
        let others = self.microtasks.take();
        self.microtasks.push(Some(task));
        for other in others {
            self.microtasks.push(other);
        }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        // The bitwise or avoids a branch.
        self.microtasks.rest() | self.ticks.rest() == 0
    }

    /// Returns whether there are microtasks.
    #[allow(dead_code, reason = "called by the layer for Node only")]
    pub(crate) fn has_microtasks(&self) -> bool {
        self.microtasks.rest() != 0
    }

    #[inline(always)]
    pub(crate) fn has_ticks(&self) -> bool {
        self.ticks.rest() != 0
    }

    #[inline(always)]
    pub(crate) fn pop_tick(&self) -> Option<Call> {
        self.ticks.pop()
    }

    #[inline(always)]
    pub(crate) fn pop_microtask(&self) -> Option<Microtask<R>> {
        match self.microtasks.pop()? {
            Some(task) => Some(Microtask::Task(task)),
            None => self.calls.pop().map(Microtask::Call),
        }
    }

    /// Pops the microtask that is the only entry of both lanes.
    #[inline(always)]
    pub(crate) fn pop_only_microtask(&self) -> Option<Microtask<R>> {
        if self.ticks.rest() | (self.microtasks.len() ^ 1) != 0 {
            return None;
        }
        self.pop_microtask()
    }

    /// Releases the memory of a burst once there are no ticks.
    #[inline]
    pub(crate) fn shrink_ticks(&self) {
        self.ticks.shrink(LARGE);
    }

    /// Releases the memory of a burst once there are no microtasks.
    #[inline(always)]
    pub(crate) fn shrink(&self) {
        if self.microtasks.shrink(LARGE) {
            self.calls.shrink(0);
        }
    }

    /// Takes the tasks, in order. Ticks and closures stay.
    pub(crate) fn take_tasks(&self) -> Vec<R> {
        let mut tasks = Vec::new();
        for entry in self.microtasks.take() {
            match entry {
                Some(task) => tasks.push(task),
                None => self.microtasks.push(None),
            }
        }
        tasks
    }

    /// Calls `f` with each task, in order. `f` runs no user code.
    pub(crate) fn each_task(&self, mut f: impl FnMut(&R)) {
        for entry in self.microtasks.take() {
            if let Some(task) = &entry {
                f(task);
            }
            self.microtasks.push(entry);
        }
    }

    /// Takes the ticks and closures. The tasks stay.
    pub(crate) fn take_calls(&self) -> [Vec<Call>; 2] {
        if self.is_empty() {
            return [Vec::new(), Vec::new()];
        }
        let tasks = self.take_tasks();
        drop(self.microtasks.take());
        let calls = [self.ticks.take(), self.calls.take()];
        for task in tasks {
            self.push_task(task);
        }
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::{Call, LARGE, Lane, Microtask};

    /// Returns the names of the tasks; a closure shows as `call`.
    fn microtasks(lane: &Lane<&'static str>) -> Vec<&'static str> {
        let pop = || lane.pop_microtask();
        std::iter::from_fn(pop)
            .map(|microtask| match microtask {
                Microtask::Task(name) => name,
                Microtask::Call(call) => {
                    call.call();
                    "call"
                }
            })
            .collect()
    }

    fn call() -> Call {
        Call::new(|| ())
    }

    #[test]
    fn tasks_and_closures_share_one_order() {
        let lane = Lane::new();
        assert!(lane.is_empty());
        lane.push_task("a");
        lane.push_call(call());
        lane.push_call(call());
        assert_eq!(lane.try_push_task("b"), Ok(()));
        lane.push_call(call());
        assert!(!lane.is_empty());
        assert_eq!(microtasks(&lane), ["a", "call", "call", "b", "call"]);
        assert!(lane.is_empty());
    }

    #[test]
    fn only_a_microtask_without_company_is_the_only_entry() {
        let lane = Lane::new();
        assert!(lane.pop_only_microtask().is_none());
        lane.push_task("a");
        lane.push_tick(call());
        assert!(lane.pop_only_microtask().is_none(), "there is a tick");
        drop(lane.pop_tick());
        lane.push_task("b");
        assert!(lane.pop_only_microtask().is_none(), "there are two");
        assert_eq!(microtasks(&lane), ["a", "b"]);
        lane.push_call(call());
        let only = lane.pop_only_microtask();
        assert!(matches!(only, Some(Microtask::Call(_))));
        lane.push_task("c");
        let only = lane.pop_only_microtask();
        assert!(matches!(only, Some(Microtask::Task("c"))));
        assert!(lane.is_empty());
    }

    #[test]
    fn a_task_is_caught_only_if_its_wake_queues_nothing_else() {
        let lane = Lane::new();
        let wake = |task| assert!(lane.try_push_task(task).is_ok());
        assert_eq!(lane.catch_task(|| wake("a")), Some("a"));
        assert!(lane.is_empty());
        assert_eq!(lane.catch_task(|| {}), None);
        wake("b");
        assert_eq!(lane.catch_task(|| wake("c")), None, "another one waits");
        assert_eq!(microtasks(&lane), ["b", "c"]);
        let two = || {
            wake("d");
            lane.push_call(call());
            wake("e");
        };
        assert_eq!(lane.catch_task(two), None);
        assert_eq!(microtasks(&lane), ["d", "call", "e"]);
        let with_tick = || {
            lane.push_tick(call());
            wake("f");
        };
        assert_eq!(lane.catch_task(with_tick), None);
        assert!(lane.has_ticks() && !lane.is_empty());
        drop(lane.pop_tick());
        assert_eq!(microtasks(&lane), ["f"]);
    }

    #[test]
    fn a_wake_that_panics_leaves_its_task_in_the_lane() {
        let lane = Lane::new();
        let wake = || {
            let _ = lane.try_push_task("a");
            panic!("a waker of user code");
        };
        let caught = std::panic::AssertUnwindSafe(|| lane.catch_task(wake));
        assert!(std::panic::catch_unwind(caught).is_err());
        assert!(
            lane.try_push_task("b").is_ok(),
            "nothing is caught any more"
        );
        assert_eq!(microtasks(&lane), ["a", "b"]);
    }

    #[test]
    fn tasks_and_closures_can_be_taken_out_apart() {
        let fill = || {
            let lane = Lane::new();
            lane.push_tick(call());
            lane.push_task("a");
            lane.push_call(call());
            lane.push_task("b");
            lane
        };
        let lane = fill();
        assert_eq!(lane.take_tasks(), ["a", "b"]);
        assert!(lane.has_ticks());
        assert_eq!(microtasks(&lane), ["call"]);
        let lane = fill();
        assert_eq!(lane.take_calls().map(|calls| calls.len()), [1, 1]);
        assert!(!lane.has_ticks());
        assert_eq!(microtasks(&lane), ["a", "b"]);
    }

    #[test]
    fn a_lane_works_on_after_it_was_shrunk() {
        let lane = Lane::new();
        for _ in 0..=LARGE {
            lane.push_call(call());
        }
        assert_eq!(microtasks(&lane).len(), LARGE + 1);
        lane.shrink();
        lane.push_task("a");
        lane.push_call(call());
        assert_eq!(microtasks(&lane), ["a", "call"]);
    }
}
