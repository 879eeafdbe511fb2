//! The budget of I/O operations of one poll of a task.
//!
//! A source that stays ready would otherwise keep a task inside one poll for ever: no timer, no
//! other connection and no hook would run. Each operation takes one unit of the poll's budget. When
//! the budget is used up, the source is deferred to the next poll phase
//! (`event_loop/io/deferred.rs`).
//!
//! A future that a callback polls outside of a task has no budget, since a callback ends by itself.

use std::cell::Cell;

/// The number of operations that one poll may do.
const OPERATIONS_PER_POLL: i32 = 128;

thread_local! {
    /// The rest of the budget of the poll that runs on this thread.
    static LEFT: Cell<i32> = const { Cell::new(0) };
}

/// Starts the budget of a poll.
#[inline]
pub(crate) fn begin_poll() {
    LEFT.set(OPERATIONS_PER_POLL);
}

/// Takes one operation from the budget. Returns `false` if it was used up.
#[inline]
pub(crate) fn take() -> bool {
    let left = LEFT.get() - 1;
    LEFT.set(left);
    left >= 0
}

/// Returns the unit of an operation that would have blocked.
pub(crate) fn give_back() {
    LEFT.set(LEFT.get() + 1);
}

/// Returns the rest of the budget.
pub(super) fn left() -> i32 {
    LEFT.get()
}

/// Sets the rest of the budget: that of a poll which goes on, or zero.
pub(crate) fn restore(left: i32) {
    LEFT.set(left);
}
