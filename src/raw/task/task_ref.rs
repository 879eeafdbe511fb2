//! A reference to a task for any thread.

use std::ptr::NonNull;
use std::task::Waker;

use super::state::State;
use super::{Entry, Local, Meta, Output};

/// A reference to a task that any thread may hold. It keeps the memory of the task, not its future.
pub(crate) struct TaskRef<L: Local> {
    /// It is counted, and so keeps the memory.
    waker: Waker,
    meta: NonNull<Meta<L>>,
}

// SAFETY: `Meta` is `Send` and `Sync`, and the functions here access only what other threads may
// access: `local`, `slot`, which never changes, and `state`, which is atomic.
unsafe impl<L: Local> Send for TaskRef<L> {}
// SAFETY: the reason for `Send` applies to `Sync`, too.
unsafe impl<L: Local> Sync for TaskRef<L> {}

impl<L: Local> TaskRef<L> {
    pub(crate) fn new<T>(output: &Output<T, L>) -> Self {
        let meta = output.meta();
        Self {
            // The handle inside `output` keeps the memory of the task while the waker is made, also
            // if the future is gone.
            waker: Entry::of(meta).counted_waker(),
            meta: NonNull::from(meta),
        }
    }

    fn meta(&self) -> &Meta<L> {
        // SAFETY: the metadata is dropped with the memory of the task, which the counted waker
        // keeps. It is only accessed through shared references.
        unsafe { self.meta.as_ref() }
    }

    pub(crate) fn local(&self) -> &L {
        &self.meta().local
    }

    pub(crate) fn slot(&self) -> u32 {
        self.meta().slot
    }

    /// Returns whether the future has returned, panicked or been dropped.
    pub(crate) fn is_over(&self) -> bool {
        self.meta().state.get() != State::Alive
    }
}

impl<L: Local> Clone for TaskRef<L> {
    fn clone(&self) -> Self {
        Self {
            waker: self.waker.clone(),
            meta: self.meta,
        }
    }
}
