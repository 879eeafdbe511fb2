//! The entry of a live task in the registry of its loop.
// Marks: a task enters its table when it is spawned (row `spawn_join`).

use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::task::Waker;

use super::wakers::WakerKind;
use super::{Local, Meta};
use crate::raw::slots::Pointer;

/// A task whose future is alive, for the owner thread. It takes one word and counts nothing: it
/// must not be used after [`Local::ended`] was called for the task.
// The pointer is neither `Send` nor `Sync`, so the entry stays on the owner thread.
pub(crate) struct Entry<L: Local>(NonNull<Meta<L>>);

impl<L: Local> Entry<L> {
    /// Prepares the metadata of a new task, whose wakers are of this kind, for its entry.
    #[inline(always)]
    pub(super) fn new(runnable: &async_task::Runnable<Meta<L>>, kind: WakerKind) -> Self {
        let meta = runnable.metadata();
        meta.waker_vtable.set(kind.vtable);
        meta.bytes_before.set(kind.bytes_before);
        Self(NonNull::from(meta))
    }

    fn meta(&self) -> &Meta<L> {
        // SAFETY: the future is alive, by the contract of this type, and borrows the metadata. The
        // metadata is only accessed through shared references.
        unsafe { self.0.as_ref() }
    }

    /// Returns a waker of the task that is not counted.
    fn waker(&self) -> ManuallyDrop<Waker> {
        let vtable = self.meta().waker_vtable.get();
        // SAFETY: the parts are those of a waker that `async_task` makes for this task: the
        // functions are those of a task whose future has the same type. Such a waker is a pointer
        // to the task, and stays valid as long as the memory of the task. That is not freed while
        // the future, which is a part of it, is alive, nor while there is a handle. It is not
        // counted, and therefore never dropped.
        ManuallyDrop::new(unsafe { Waker::new(self.waker_data(), vtable) })
    }

    /// Returns a waker of the task that is counted.
    pub(crate) fn counted_waker(&self) -> Waker {
        Waker::clone(&self.waker())
    }

    pub(super) fn of(meta: &Meta<L>) -> Self {
        Self(NonNull::from(meta))
    }

    pub(crate) fn local(&self) -> &L {
        &self.meta().local
    }

    pub(crate) fn slot(&self) -> u32 {
        self.meta().slot
    }

    /// Schedules the task. It runs no user code.
    pub(crate) fn wake(&self) {
        self.waker().wake_by_ref();
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
        let before = usize::from(self.meta().bytes_before.get());
        ptr::with_exposed_provenance(self.0.addr().get() - before)
    }

    /// Returns the data pointer of the waker that awaits the task's output, if there is one.
    pub(crate) fn awaiter_data(&self) -> Option<*const ()> {
        let meta = self.meta();
        let awaiter = meta.awaiter.take();
        let data = awaiter.as_ref().map(Waker::data);
        meta.awaiter.set(awaiter);
        data.filter(|_| !meta.is_detached.get())
    }
}

impl<L: Local> Clone for Entry<L> {
    #[inline]
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

impl<L: Local> Pointer for Entry<L> {
    #[inline]
    fn into_raw(self) -> NonNull<()> {
        self.0.cast()
    }

    #[inline]
    unsafe fn from_raw(raw: NonNull<()>) -> Self {
        Self(raw.cast())
    }
}
