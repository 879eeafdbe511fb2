//! A task that is polled where it is woken.

use std::ptr::NonNull;
use std::task::Waker;

use super::{CLOSED, Header, Metadata, Outcome, SCHEDULED, cancel, header_of, poll};
use crate::sys::sync::Ordering;

/// The task that `waker` belongs to, to be polled at once: a wake without the way through a queue.
///
/// `None`: it is no task of this kind, or not one that `accepts`; or it is not at home; or it is woken already, being polled,
/// or over. Nothing was done then.
#[inline(always)]
pub(crate) fn hold<M: Metadata>(
    waker: &Waker,
    accepts: impl FnOnce(&M) -> bool,
) -> Option<Held<M>> {
    if !std::ptr::eq(waker.vtable(), &raw const M::waker_table().functions) {
        return None;
    }
    // SAFETY: a waker with this table holds the pointer of a task of this kind.
    let pointer = unsafe { header_of::<M>(waker.data()) };
    // SAFETY: live by the waker, which is borrowed.
    let header = unsafe { pointer.as_ref() };
    if !accepts(&header.metadata) || !header.is_home() || header.busy.get() {
        return None;
    }
    // `Relaxed` is enough: a task is closed at home only, and a wake under way elsewhere, missed here, makes a runnable of its
    // own, which sees what was done before it.
    if header.state.load(Ordering::Relaxed) & (SCHEDULED | CLOSED) != 0 {
        return None;
    }
    header.busy.set(true);
    Some(Held(pointer))
}

/// A task that is not closed, and busy, so that nobody else polls, drops or closes it. For its home thread. It counts no
/// reference: what is not closed is alive.
pub(crate) struct Held<M: Metadata>(NonNull<Header<M>>);

impl<M: Metadata> Held<M> {
    fn header(&self) -> &Header<M> {
        // SAFETY: live, as it is not closed: being alive is a reference.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn metadata(&self) -> &M {
        &self.header().metadata
    }

    /// Whether the task will be dropped instead of polled: it was aborted since it is held, or its wake was lost.
    pub(crate) fn is_aborted(&self) -> bool {
        self.header().aborted.get()
    }

    /// Polls the future once, or drops it if the task was aborted, as a [`Runnable`](super::Runnable) does.
    #[inline(always)]
    pub(crate) fn run(self) -> Outcome {
        let (pointer, is_aborted) = (self.0, self.is_aborted());
        std::mem::forget(self);
        // SAFETY: at home, as a `Held` does not leave it; not closed, so live; busy by this one.
        unsafe {
            if is_aborted {
                cancel(pointer);
                Outcome::Closed
            } else {
                poll(pointer)
            }
        }
    }
}

impl<M: Metadata> Drop for Held<M> {
    fn drop(&mut self) {
        self.header().busy.set(false);
    }
}
