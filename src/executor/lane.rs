//! The two lanes: ticks and microtasks, and the rule by which they empty.
//!
//! ```text
//! drain:  ┌─> all ticks ─> all microtasks ─┐   what is queued meanwhile joins the lane it belongs to;
//!         └────── while ticks remain ──────┘   the drain ends when both are empty
//! ```
//!
//! Pure data: the caller takes an entry out and runs it, and no borrow is held meanwhile.

use crate::raw::call::Call;
use crate::raw::ring::Ring;

/// A lane that was longer than this gives its memory back when it is empty: a burst is not paid for
/// for ever.
const LARGE: usize = 1 << 16;

/// One entry of the microtask lane.
pub(crate) enum Microtask<R> {
    /// A woken task, to be polled once.
    Task(R),
    /// A queued closure; without captures, as the one that polls the future of `block_on`, it costs
    /// no allocation.
    Call(Call),
}

/// Both lanes of one loop; `R` is what polls a task.
pub(crate) struct Lane<R> {
    ticks: Ring<Call>,
    /// In order: a task, or `None` for the next of `calls`. One word an entry, as most are tasks.
    microtasks: Ring<Option<R>>,
    calls: Ring<Call>,
}

impl<R> Lane<R> {
    pub(crate) fn new() -> Self {
        Self {
            ticks: Ring::new(),
            microtasks: Ring::new(),
            calls: Ring::new(),
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

    /// Queues a woken task, or gives it back if the lane must grow first: without a call on the
    /// usual way.
    #[inline(always)]
    pub(crate) fn try_push_task(&self, task: R) -> Result<(), R> {
        let pushed = self.microtasks.try_push(Some(task));
        pushed.map_err(|task| task.expect("what was pushed comes back"))
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        // Without a branch in between.
        self.ticks.rest() | self.microtasks.rest() == 0
    }

    /// Whether microtasks wait, whatever the ticks.
    #[cfg(feature = "node")]
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

    /// Takes the microtask out that is the one entry of both lanes.
    #[inline(always)]
    pub(crate) fn pop_only_microtask(&self) -> Option<Microtask<R>> {
        if self.ticks.rest() | (self.microtasks.len() ^ 1) != 0 {
            return None;
        }
        self.pop_microtask()
    }

    /// Gives the memory of a burst back once the ticks are done.
    #[inline]
    pub(crate) fn shrink_ticks(&self) {
        self.ticks.shrink(LARGE);
    }

    /// Gives the memory of a burst back once the microtasks are done.
    #[inline(always)]
    pub(crate) fn shrink(&self) {
        if self.microtasks.shrink(LARGE) {
            self.calls.shrink(0);
        }
    }

    /// Takes the tasks out, in order; ticks and closures stay.
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

    /// Takes ticks and closures out; the tasks stay.
    pub(crate) fn take_calls(&self) -> [Vec<Call>; 2] {
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

    /// The names of tasks; a closure shows as `call`.
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
