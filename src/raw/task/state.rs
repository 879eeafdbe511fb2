//! The state of a task, which the owner thread changes and any thread reads.
// Marks: each poll reads the state (row `self_wake/1`).

use std::sync::atomic::{AtomicU8, Ordering};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    /// The future is alive.
    Alive,
    /// The future has returned or panicked. `async_task` has the output, or will have it when the
    /// poll returns.
    Ended,
    /// The future was dropped before it returned, and its drop panicked. The panic is
    /// [kept](super::Local::keep) for the handle.
    DropPanicked,
    // The states without an output are the last ones: one comparison finds them.
    /// The future was dropped before it returned.
    Cancelled,
    /// The output was taken.
    Taken,
}

/// An atomic that costs the owner thread no more than a cell: it is only loaded and stored.
pub(super) struct StateCell(AtomicU8);

impl StateCell {
    pub(super) fn new() -> Self {
        Self(AtomicU8::new(State::Alive as u8))
    }

    #[inline(always)]
    pub(super) fn get(&self) -> State {
        const ALIVE: u8 = State::Alive as u8;
        const ENDED: u8 = State::Ended as u8;
        const CANCELLED: u8 = State::Cancelled as u8;
        const DROP_PANICKED: u8 = State::DropPanicked as u8;
        match self.0.load(Ordering::Acquire) {
            ALIVE => State::Alive,
            ENDED => State::Ended,
            CANCELLED => State::Cancelled,
            DROP_PANICKED => State::DropPanicked,
            _ => State::Taken,
        }
    }

    /// Sets the state. Only the owner thread calls it.
    #[inline]
    pub(super) fn set(&self, state: State) {
        self.0.store(state as u8, Ordering::Release);
    }
}
