//! The two lanes: ticks and microtasks.
//!
//! ```text
//! drain:  ┌─> all ticks ─> all microtasks ─┐   new entries join their lane;
//!         └────── while ticks remain ──────┘   the drain ends when both are empty
//! ```
//!
//! The lanes are pure data: the caller pops an entry and runs it, and no borrow is held meanwhile.
// Marks: each wake and each poll passes them (rows `self_wake/1`, `ping_pong`).

use std::cell::Cell;

use crate::raw::call::Call;
use crate::raw::ring::Ring;

/// A lane that was longer than this releases its memory when it is empty, so that a burst does not
/// keep it for ever.
const LARGE: usize = 1 << 16;

/// One of the two lanes.
#[derive(Clone, Copy)]
pub(crate) enum Lane {
    Ticks,
    Microtasks,
}

/// An entry of the microtask lane.
pub(crate) enum Microtask<R> {
    /// A woken task, to be polled once.
    Task(R),
    /// A queued closure. A closure without captures, such as the one that polls the main future,
    /// needs no allocation.
    Call(Call),
}

/// What the lanes hold, as far as it is known without a look at the rings.
#[derive(Clone, Copy)]
enum Content {
    /// Nothing. The next woken task becomes the front.
    Nothing,
    /// The front, and nothing else.
    Front,
    /// Nothing: the front was taken and is being polled. What is queued now goes into the rings.
    Polled,
    /// Whatever the rings hold. If they hold something, there may be a front, too.
    Any,
}

/// Both lanes of one loop. `R` is a woken task.
///
/// Most events wake one task, which is polled at once. Such a task does not go through a ring: it
/// waits in the front of the microtask lane.
pub(crate) struct Lanes<R> {
    ticks: Ring<Call>,
    /// The first microtask, if it was queued while the lanes were empty.
    front: Cell<Option<R>>,
    /// The other microtasks in order: a task, or `None` for the next of `calls`. An entry takes one
    /// word, since most are tasks.
    microtasks: Ring<Option<R>>,
    calls: Ring<Call>,
    content: Cell<Content>,
}

impl<R> Lanes<R> {
    pub(crate) fn new() -> Self {
        Self {
            ticks: Ring::new(),
            front: Cell::new(None),
            microtasks: Ring::new(),
            calls: Ring::new(),
            content: Cell::new(Content::Nothing),
        }
    }

    #[inline]
    pub(crate) fn push_tick(&self, call: Call) {
        self.ticks.push(call);
        self.content.set(Content::Any);
    }

    /// Queues a closure as a microtask.
    #[inline]
    pub(crate) fn push_call(&self, call: Call) {
        self.calls.push(call);
        self.microtasks.push(None);
        self.content.set(Content::Any);
    }

    /// Queues a woken task as a microtask.
    #[inline]
    pub(crate) fn push_task(&self, task: R) {
        self.microtasks.push(Some(task));
        self.content.set(Content::Any);
    }

    /// Queues a woken task, or returns it if the lane must grow first. This keeps the common path
    /// free of calls.
    #[inline(always)]
    pub(crate) fn try_push_task(&self, task: R) -> Result<(), R> {
        if self.is_idle() {
            // The front is empty: there is nothing to drop.
            std::mem::forget(self.front.replace(Some(task)));
            self.content.set(Content::Front);
            return Ok(());
        }
        self.try_push_again(task)
    }

    /// Queues a task that has woken itself, or returns it if the lane must grow first. It does not
    /// become the front: a drain is in progress, and looks at the rings.
    #[inline]
    pub(crate) fn try_push_again(&self, task: R) -> Result<(), R> {
        // `Any` claims nothing, so it is true also if the ring is full.
        self.content.set(Content::Any);
        let pushed = self.microtasks.try_push(Some(task));
        pushed.map_err(|task| task.expect("what was pushed comes back"))
    }

    /// Takes the front, to be polled, if it is the only entry of both lanes.
    #[inline(always)]
    pub(crate) fn pop_front(&self) -> Option<R> {
        if !matches!(self.content.get(), Content::Front) {
            return None;
        }
        self.content.set(Content::Polled);
        self.front.take()
    }

    /// Ends the poll of the front. If it has queued nothing, the next woken task becomes the front.
    // The rings are not looked at: what is queued changes the content.
    #[inline(always)]
    pub(crate) fn end_front(&self) {
        if matches!(self.content.get(), Content::Polled) {
            self.content.set(Content::Nothing);
        } else {
            self.end_drain();
        }
    }

    /// Queues a task before all other microtasks.
    // Few entries move: the first drain after the front was queued calls it.
    fn push_first(&self, task: R) {
        let others = self.microtasks.take();
        self.microtasks.push(Some(task));
        for other in others {
            self.microtasks.push(other);
        }
    }

    /// Returns whether both lanes are known to be empty. This is the short test; a result of
    /// `false` proves nothing.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.content.get(), Content::Nothing)
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        match self.content.get() {
            Content::Nothing | Content::Polled => true,
            Content::Front => false,
            // The bitwise or avoids a branch.
            Content::Any => self.microtasks.rest() | self.ticks.rest() == 0,
        }
    }

    /// Begins a drain, which takes the entries out of the rings.
    #[inline]
    pub(crate) fn begin_drain(&self) {
        if let Some(task) = self.front.take() {
            // It was queued while the rings were empty: it is older than all they hold.
            self.push_first(task);
        }
        self.content.set(Content::Any);
    }

    /// Ends a drain. If both lanes are empty, the next woken task becomes the front. Returns
    /// whether they are.
    #[inline(always)]
    pub(crate) fn end_drain(&self) -> bool {
        let is_empty = self.is_empty();
        if is_empty {
            self.content.set(Content::Nothing);
        }
        is_empty
    }

    /// Returns whether there are microtasks.
    pub(crate) fn has_microtasks(&self) -> bool {
        self.begin_drain();
        self.microtasks.rest() != 0
    }

    #[inline]
    pub(crate) fn has_ticks(&self) -> bool {
        self.ticks.rest() != 0
    }

    #[inline]
    pub(crate) fn pop_tick(&self) -> Option<Call> {
        self.ticks.pop()
    }

    /// Takes the next microtask, in a drain.
    #[inline]
    pub(crate) fn pop_microtask(&self) -> Option<Microtask<R>> {
        match self.microtasks.pop()? {
            Some(task) => Some(Microtask::Task(task)),
            None => Some(Microtask::Call(self.calls.pop()?)),
        }
    }

    /// Returns the number of microtasks that were queued so far. One that waits in the front moves
    /// into the ring, and counts.
    pub(crate) fn queued(&self) -> usize {
        if let Some(task) = self.front.take() {
            self.push_first(task);
            self.content.set(Content::Any);
        }
        self.microtasks.next()
    }

    /// Takes the youngest microtask, if it was queued when the number was `queued`.
    pub(crate) fn take_queued_since(&self, queued: usize) -> Option<Microtask<R>> {
        if self.queued() != queued.wrapping_add(1) {
            return None;
        }
        match self.microtasks.pop_last()? {
            Some(task) => Some(Microtask::Task(task)),
            None => self.calls.pop_last().map(Microtask::Call),
        }
    }

    /// Returns the number of ticks and closures that were taken out.
    pub(crate) fn calls_taken(&self) -> u64 {
        self.ticks.popped() + self.calls.popped()
    }

    /// Releases the memory of a burst once there are no ticks.
    #[inline]
    pub(crate) fn shrink_ticks(&self) {
        self.ticks.shrink(LARGE);
    }

    /// Releases the memory of a burst once there are no microtasks.
    #[inline]
    pub(crate) fn shrink(&self) {
        if self.microtasks.shrink(LARGE) {
            self.calls.shrink(0);
        }
    }

    /// Takes the tasks, in order. Ticks and closures stay.
    pub(crate) fn take_tasks(&self) -> Vec<R> {
        self.begin_drain();
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
        self.begin_drain();
        for entry in self.microtasks.take() {
            if let Some(task) = &entry {
                f(task);
            }
            self.microtasks.push(entry);
        }
    }

    /// Replaces each tick and closure by what `wrap` makes of it.
    pub(crate) fn wrap_calls(&self, wrap: impl Fn(Call) -> Call) {
        for ring in [&self.ticks, &self.calls] {
            for number in ring.first()..ring.next() {
                // In its place, since a call that is popped counts as taken out.
                if let Some(call) = ring.replace(number, Call::new(|| ())) {
                    ring.replace(number, wrap(call));
                }
            }
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
    use super::{Call, LARGE, Lanes, Microtask};

    /// Returns the names of the tasks; a closure shows as `call`.
    fn microtasks(lanes: &Lanes<&'static str>) -> Vec<&'static str> {
        let pop = || lanes.pop_microtask();
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
        let lanes = Lanes::new();
        assert!(lanes.is_empty());
        lanes.push_task("a");
        lanes.push_call(call());
        lanes.push_call(call());
        assert_eq!(lanes.try_push_task("b"), Ok(()));
        lanes.push_call(call());
        assert!(!lanes.is_empty());
        assert_eq!(microtasks(&lanes), ["a", "call", "call", "b", "call"]);
        assert!(lanes.is_empty());
    }

    #[test]
    fn what_was_queued_last_can_be_taken_before_its_turn() {
        let lanes = Lanes::new();
        assert!(lanes.try_push_task("front").is_ok());
        let queued = lanes.queued();
        lanes.push_task("last");
        assert!(matches!(
            lanes.take_queued_since(queued),
            Some(Microtask::Task("last"))
        ));
        assert!(lanes.take_queued_since(queued).is_none());
        lanes.push_call(call());
        assert!(matches!(
            lanes.take_queued_since(queued),
            Some(Microtask::Call(_))
        ));
        lanes.push_call(call());
        lanes.push_task("second");
        assert!(lanes.take_queued_since(queued).is_none(), "two were queued");
        assert_eq!(microtasks(&lanes), ["front", "call", "second"]);
    }

    #[test]
    fn a_task_that_is_woken_alone_is_the_front() {
        let lanes = Lanes::new();
        let wake = |task| assert!(lanes.try_push_task(task).is_ok());
        assert!(lanes.is_idle() && lanes.is_empty() && lanes.pop_front().is_none());
        wake("a");
        assert!(!lanes.is_idle() && !lanes.is_empty());
        assert_eq!(lanes.pop_front(), Some("a"));
        assert!(lanes.is_empty() && !lanes.is_idle(), "it is being polled");
        lanes.end_front();
        assert!(lanes.is_idle());

        wake("b");
        assert_eq!(lanes.pop_front(), Some("b"));
        wake("c");
        lanes.end_front();
        assert!(!lanes.is_idle(), "the poll has queued another one");
        assert_eq!(lanes.pop_front(), None);
        lanes.begin_drain();
        assert_eq!(microtasks(&lanes), ["c"]);
        assert!(lanes.end_drain() && lanes.is_idle());
    }

    #[test]
    fn a_drain_inside_the_poll_of_the_front_leaves_nothing_behind() {
        let lanes = Lanes::new();
        assert!(lanes.try_push_task("a").is_ok());
        assert_eq!(lanes.pop_front(), Some("a"));
        assert!(lanes.try_push_task("b").is_ok());
        assert!(!lanes.is_empty());
        lanes.begin_drain();
        assert_eq!(microtasks(&lanes), ["b"]);
        lanes.end_front();
        assert!(lanes.is_idle());
    }

    #[test]
    fn what_is_queued_behind_the_front_runs_behind_it() {
        let lanes = Lanes::new();
        let wake = |task| assert!(lanes.try_push_task(task).is_ok());
        wake("a");
        lanes.push_call(call());
        wake("b");
        assert_eq!(lanes.pop_front(), None, "it is not alone");
        lanes.begin_drain();
        assert_eq!(microtasks(&lanes), ["a", "call", "b"]);
        assert!(lanes.end_drain());

        wake("c");
        lanes.push_tick(call());
        assert_eq!(lanes.pop_front(), None, "the tick comes first");
        lanes.begin_drain();
        assert!(lanes.pop_tick().is_some() && lanes.has_microtasks());
        assert!(!lanes.end_drain());
        assert_eq!(microtasks(&lanes), ["c"]);
        lanes.end_drain();

        wake("d");
        assert_eq!(lanes.take_tasks(), ["d"]);
        assert!(lanes.is_empty());
    }

    #[test]
    fn tasks_and_closures_can_be_taken_out_separately() {
        let fill = || {
            let lanes = Lanes::new();
            lanes.push_tick(call());
            lanes.push_task("a");
            lanes.push_call(call());
            lanes.push_task("b");
            lanes
        };
        let lanes = fill();
        assert_eq!(lanes.take_tasks(), ["a", "b"]);
        assert!(lanes.has_ticks());
        assert_eq!(microtasks(&lanes), ["call"]);
        let lanes = fill();
        assert_eq!(lanes.take_calls().map(|calls| calls.len()), [1, 1]);
        assert!(!lanes.has_ticks());
        assert_eq!(microtasks(&lanes), ["a", "b"]);
    }

    #[test]
    fn a_lane_works_on_after_it_was_shrunk() {
        let lanes = Lanes::new();
        for _ in 0..=LARGE {
            lanes.push_call(call());
        }
        assert_eq!(microtasks(&lanes).len(), LARGE + 1);
        lanes.shrink();
        lanes.push_task("a");
        lanes.push_call(call());
        assert_eq!(microtasks(&lanes), ["a", "call"]);
    }
}
