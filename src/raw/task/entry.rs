//! The entry of a live task in the registry of its loop.

use std::ptr::NonNull;
use std::task::Waker;

use super::{Local, Meta};

/// A task whose future is alive, for the owner thread. [`Local::ended`] drops it.
pub(crate) struct Entry<L: Local> {
    waker: Waker,
    /// The metadata of the waker's task. The pointer is neither `Send` nor `Sync`, so the entry
    /// stays on the owner thread.
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
        // SAFETY: the waker keeps the memory of the task alive, and the metadata in it is only
        // accessed through shared references.
        unsafe { self.meta.as_ref() }
    }

    pub(crate) fn local(&self) -> &L {
        &self.meta().local
    }

    pub(crate) fn slot(&self) -> u32 {
        self.meta().slot
    }

    /// Schedules the task. It runs no user code.
    pub(crate) fn wake(&self) {
        self.waker.wake_by_ref();
    }

    /// Marks the task to be dropped in place of its next poll, and schedules it. It runs no user
    /// code.
    pub(crate) fn abort(&self) {
        if !self.meta().is_aborted.replace(true) {
            self.wake();
        }
    }

    /// Returns the data pointer of the task's wakers.
    pub(crate) fn waker_data(&self) -> *const () {
        self.waker.data()
    }

    /// Returns the data pointer of the waker that awaits the task's output, if there is one.
    pub(crate) fn awaiter_data(&self) -> Option<*const ()> {
        let place = &self.meta().awaiter;
        let awaiter = place.take();
        let data = awaiter.as_ref().map(Waker::data);
        place.set(awaiter);
        data
    }
}
