//! The task of a future that stays on the stack of its caller.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};

use async_task::{ScheduleInfo, WithInfo};

use super::wakers::WakerKind;
use super::{Entry, Local, Meta, Runnable, State};

/// Polls what is on the stack of the caller.
pub(crate) type PollScoped<'a> = dyn FnMut(&mut Context<'_>) -> Poll<()> + 'a;

/// Makes `poll` a task while `body` runs. `body` receives the runnable of its first poll, and its
/// entry. A panic of `poll` unwinds out of [`Runnable::run`], and ends the task.
///
/// The task belongs to the calling thread, which is its owner thread.
pub(crate) fn with_scoped<L: Local, R>(
    local: L,
    slot: u32,
    poll: &mut PollScoped<'_>,
    body: impl FnOnce(Runnable<L>, Entry<L>) -> R,
) -> R {
    /// Ends the task with the scope, also if `body` unwinds.
    struct Scope<L: Local>(Option<async_task::Task<(), Meta<L>>>);
    impl<L: Local> Drop for Scope<L> {
        fn drop(&mut self) {
            if let Some(task) = &self.0 {
                task.metadata().state.set(State::Cancelled);
                // A runnable that is left in a lane is dropped in place of its poll.
                task.metadata().is_aborted.set(true);
            }
            // This cancels the task: it is not polled any more.
            drop(self.0.take());
        }
    }

    let meta = Meta::new(local, slot);
    let poll: NonNull<PollScoped<'_>> = NonNull::from(poll);
    // SAFETY: only the lifetime changes. The pointer is dereferenced in `Scoped::poll` alone, which
    // is not called after this function: `Scope` cancels the task at its end, also if `body`
    // unwinds, and `poll` is borrowed for at least that long.
    let poll = unsafe {
        std::mem::transmute::<NonNull<PollScoped<'_>>, NonNull<PollScoped<'static>>>(poll)
    };
    let scoped = Scoped {
        poll,
        _local: PhantomData,
    };
    let schedule = |runnable: async_task::Runnable<Meta<L>>, info: ScheduleInfo| {
        if info.woken_while_running {
            L::schedule_again(Runnable(runnable));
        } else if runnable.metadata().state.get() == State::Cancelled {
            // The end of the scope schedules a task that waits, so that its future is dropped.
            drop(runnable);
        } else {
            L::schedule(Runnable(runnable));
        }
    };
    let builder = async_task::Builder::new().metadata(meta);
    // SAFETY: the future is not `Send`, but its runnable is run on this thread only, by the
    // contract of `Local::schedule`. It may be dropped on any thread, since the future owns
    // nothing. Its type is `'static`. The schedule function captures nothing, and reads what is
    // atomic. Wakers may be used on any thread, since the metadata is `Send` and `Sync`.
    let (runnable, task) = unsafe { builder.spawn_unchecked(|_| scoped, WithInfo(schedule)) };
    let _scope = Scope(Some(task));
    runnable.waker().data().expose_provenance();
    let entry = Entry::new(&runnable, WakerKind::of(&runnable));
    body(Runnable(runnable), entry)
}

/// The future of such a task.
struct Scoped {
    poll: NonNull<PollScoped<'static>>,
    /// It stays on the owner thread.
    _local: PhantomData<*const ()>,
}

impl Future for Scoped {
    type Output = ();

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: the pointer comes from `with_scoped`, which is still on this thread's stack and
        // borrows the closure mutably without using it. A task is not polled inside its own poll,
        // so there is no second reference.
        unsafe { self.poll.as_mut()(cx) }
    }
}
