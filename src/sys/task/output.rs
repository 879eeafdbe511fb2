//! The end of a task at which its output is awaited.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use super::{Header, Metadata, Payload, TaskRef, add_reference, clear, release};

/// Where the output of a task is awaited, on its home thread.
pub(crate) struct Output<T, M: Metadata> {
    pointer: NonNull<Header<M>>,
    /// Holds a `T`; stays home, as a [`TaskRef`] does.
    output: PhantomData<T>,
}

impl<T, M: Metadata> Output<T, M> {
    /// The one `Output` of a task.
    ///
    /// # Safety
    ///
    /// The task's future returns a `T`, and one of its references is for this.
    pub(super) unsafe fn new(pointer: NonNull<Header<M>>) -> Self {
        Self {
            pointer,
            output: PhantomData,
        }
    }

    fn header(&self) -> &Header<M> {
        // SAFETY: live by this reference.
        unsafe { self.pointer.as_ref() }
    }

    /// The task's output, or its panic; `None` once it was closed without one, or the output was taken.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<Option<Result<T, Payload>>> {
        let header = self.header();
        if !header.is_closed() {
            let awaiter = header.awaiter.take();
            let awaiter = awaiter.filter(|awaiter| awaiter.will_wake(cx.waker()));
            let awaiter = awaiter.unwrap_or_else(|| cx.waker().clone());
            // The drop of the former waker and the clone are anybody's code: has it run the task?
            if !header.is_closed() {
                header.awaiter.set(Some(awaiter));
                return Poll::Pending;
            }
        }
        let mut output: Option<Result<T, Payload>> = None;
        // SAFETY: at home and closed; `T` is the output's type, by the way an `Output` is made.
        unsafe { (header.vtable.take)(self.pointer, (&raw mut output).cast()) };
        Poll::Ready(output)
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.header().is_closed()
    }

    /// A hold on the task that does not await it.
    pub(crate) fn task(&self) -> TaskRef<M> {
        add_reference(&self.header().state);
        TaskRef {
            pointer: self.pointer,
        }
    }

    pub(crate) fn metadata(&self) -> &M {
        &self.header().metadata
    }
}

/// The task goes on by itself. If it has ended, its output is dropped.
impl<T, M: Metadata> Drop for Output<T, M> {
    fn drop(&mut self) {
        let header = self.header();
        header.joined.set(false);
        // Dropped at the very end: it is anybody's code, and may panic.
        let _awaiter = header.awaiter.take();
        if header.is_closed() {
            // SAFETY: at home, live by this reference, closed.
            unsafe { clear(self.pointer) };
        }
        // SAFETY: this reference is not used afterwards.
        unsafe { release(self.pointer, 1) };
    }
}
