//! The two lanes: ticks and microtasks, and the rule by which they empty.
//!
//! ```text
//! drain:  ┌─> all ticks ─> all microtasks ─┐   what is queued meanwhile joins the lane it belongs to;
//!         └────── while ticks remain ──────┘   the drain ends when both are empty
//! ```
//!
//! Pure data: [`Lane::next`] says what runs next, the caller runs it, and no borrow is held meanwhile.

use std::collections::VecDeque;

use crate::sys::call::Call;
use crate::sys::queue::Queue;

/// A lane that was longer than this gives its memory back when it is empty: a burst is not paid for for ever.
const LARGE: usize = 1 << 16;

/// One entry of the microtask lane.
pub(crate) enum Microtask<R> {
    /// A woken task, to be polled once.
    Task(R),
    /// A queued closure; without captures, as the one that polls the future of `block_on`, it costs no allocation.
    Call(Call),
}

/// Both lanes of one loop; `R` is what polls a task.
pub(crate) struct Lane<R> {
    ticks: Queue<Call>,
    microtasks: Queue<Microtask<R>>,
}

/// How far a drain has come. It begins with the ticks.
#[derive(Default)]
pub(crate) struct Drain {
    /// Past the ticks of this round: the microtasks go on to their end first.
    in_microtasks: bool,
}

impl Drain {
    /// A drain whose first entry, a microtask, has been run without the lanes.
    pub(crate) fn past_ticks() -> Self {
        Self {
            in_microtasks: true,
        }
    }

    /// Whether what was taken last was a microtask.
    pub(crate) fn is_in_microtasks(&self) -> bool {
        self.in_microtasks
    }
}

impl<R> Lane<R> {
    pub(crate) fn new() -> Self {
        Self {
            ticks: Queue::new(),
            microtasks: Queue::new(),
        }
    }

    #[inline]
    pub(crate) fn push_tick(&self, call: Call) {
        self.ticks.push(call);
    }

    #[inline(always)]
    pub(crate) fn push_microtask(&self, microtask: Microtask<R>) {
        self.microtasks.push(microtask);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        // Without a branch in between.
        self.ticks.len() | self.microtasks.len() == 0
    }

    /// Whether microtasks wait, whatever the ticks.
    #[cfg(feature = "node")]
    pub(crate) fn has_microtasks(&self) -> bool {
        self.microtasks.len() > 0
    }

    /// The next microtask, whatever the ticks.
    #[cfg(feature = "node")]
    pub(crate) fn next_microtask(&self) -> Option<Microtask<R>> {
        self.microtasks.pop()
    }

    /// Takes everything out.
    pub(crate) fn take_all(&self) -> (VecDeque<Call>, VecDeque<Microtask<R>>) {
        (self.ticks.take(), self.microtasks.take())
    }

    /// What the drain runs next, a tick like a queued closure; `None` ends it.
    #[inline]
    pub(crate) fn next(&self, drain: &mut Drain) -> Option<Microtask<R>> {
        if drain.in_microtasks {
            let microtask = self.microtasks.pop();
            if microtask.is_some() {
                return microtask;
            }
            self.microtasks.shrink(LARGE);
            drain.in_microtasks = false;
        }
        // Ticks that the microtasks have queued begin another round.
        if let Some(tick) = self.ticks.pop() {
            return Some(Microtask::Call(tick));
        }
        drain.in_microtasks = true;
        self.microtasks.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::{Call, Drain, Lane, Microtask};

    type NameLane = Lane<&'static str>;

    /// Names of ticks are not kept: a tick shows as `tick`.
    fn next(lane: &NameLane, drain: &mut Drain) -> Option<&'static str> {
        lane.next(drain).map(|job| match job {
            Microtask::Call(call) => {
                call.call();
                "tick"
            }
            Microtask::Task(name) => name,
        })
    }

    #[test]
    fn n001_ticks_come_before_microtasks_each_in_order() {
        let lane = NameLane::new();
        lane.push_microtask(Microtask::Task("a"));
        lane.push_microtask(Microtask::Task("b"));
        lane.push_tick(Call::new(|| ()));
        let mut drain = Drain::default();
        assert_eq!(next(&lane, &mut drain), Some("tick"));
        assert_eq!(next(&lane, &mut drain), Some("a"));
        assert_eq!(next(&lane, &mut drain), Some("b"));
        assert_eq!(next(&lane, &mut drain), None);
        assert!(lane.is_empty());
    }

    #[test]
    fn n002_a_tick_queued_by_a_microtask_waits_for_the_other_microtasks() {
        let lane = NameLane::new();
        lane.push_microtask(Microtask::Task("a"));
        lane.push_microtask(Microtask::Task("b"));
        let mut drain = Drain::default();
        assert_eq!(next(&lane, &mut drain), Some("a"));
        lane.push_tick(Call::new(|| ()));
        lane.push_microtask(Microtask::Task("c"));
        assert_eq!(next(&lane, &mut drain), Some("b"));
        assert_eq!(next(&lane, &mut drain), Some("c"));
        assert_eq!(next(&lane, &mut drain), Some("tick"));
        assert_eq!(next(&lane, &mut drain), None);
    }

    #[test]
    fn n003_a_microtask_queued_by_a_tick_waits_for_the_other_ticks() {
        let lane = NameLane::new();
        lane.push_tick(Call::new(|| ()));
        lane.push_tick(Call::new(|| ()));
        let mut drain = Drain::default();
        assert_eq!(next(&lane, &mut drain), Some("tick"));
        lane.push_microtask(Microtask::Task("a"));
        assert_eq!(next(&lane, &mut drain), Some("tick"));
        assert_eq!(next(&lane, &mut drain), Some("a"));
        assert_eq!(next(&lane, &mut drain), None);
    }

    #[test]
    fn a_drain_that_was_cut_short_starts_again_with_ticks() {
        let lane = NameLane::new();
        lane.push_microtask(Microtask::Task("a"));
        lane.push_microtask(Microtask::Task("b"));
        let mut drain = Drain::default();
        assert_eq!(next(&lane, &mut drain), Some("a"));
        lane.push_tick(Call::new(|| ()));
        let mut drain = Drain::default();
        assert_eq!(next(&lane, &mut drain), Some("tick"));
        assert_eq!(next(&lane, &mut drain), Some("b"));
        assert_eq!(next(&lane, &mut drain), None);
    }
}
