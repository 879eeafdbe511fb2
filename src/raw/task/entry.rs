//! What the registry of a loop keeps of a task that is alive.

use std::ptr::NonNull;
use std::task::Waker;

use super::{Local, Meta};

/// A task whose future is there, for the owner thread. [`Local::ended`] is when to drop it.
pub(crate) struct Entry<L: Local> {
    waker: Waker,
    /// Of the task that the waker belongs to. Neither `Send` nor `Sync`: it stays on the owner
    /// thread.
    meta: NonNull<Meta<L>>,
}

impl<L: Local> Entry<L> {
    pub(super) fn new(runnable: &async_task::Runnable<Meta<L>>) -> Self {
        Self {
            waker: runnable.waker(),
            meta: NonNull::from(runnable.metadata()),
        }
    }

    fn meta(&self) -> &Meta<L> {
        // SAFETY: the waker keeps the task's memory, and the metadata in it, which is only ever
        // shared.
        unsafe { self.meta.as_ref() }
    }

    pub(crate) fn local(&self) -> &L {
        &self.meta().local
    }

    pub(crate) fn slot(&self) -> u32 {
        self.meta().slot
    }

    /// Schedules the task. Runs no user code.
    pub(crate) fn wake(&self) {
        self.waker.wake_by_ref();
    }

    /// Has the task dropped, instead of polled, in its next turn. Runs no user code.
    pub(crate) fn abort(&self) {
        if !self.meta().is_aborted.replace(true) {
            self.wake();
        }
    }

    /// The data pointer of the task's wakers.
    pub(crate) fn waker_data(&self) -> *const () {
        self.waker.data()
    }

    /// The data pointer of the waker that awaits the task's output, if there is one.
    pub(crate) fn awaiter_data(&self) -> Option<*const ()> {
        let place = &self.meta().awaiter;
        let awaiter = place.take();
        let data = awaiter.as_ref().map(Waker::data);
        place.set(awaiter);
        data
    }
}
