//! The receiving side of a task's output.
// Marks: an output that is there is taken without a call (row `spawn_join`); the rest is not
// inlined.

use std::future::Future;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::{Entry, Local, Meta, Payload, State};
use crate::raw::bound::Stays;
use crate::raw::nesting::drop_flat;

/// Awaits the output of a task on its owner thread. It takes one word.
pub(crate) struct Output<T: 'static, L: Local> {
    task: ManuallyDrop<Handle<T, L>>,
    /// It stays on the owner thread.
    _local: Stays,
}

/// The handle of `async_task`. Its `Drop` would cancel the task, so it is always
/// [detached](async_task::Task::detach) instead.
type Handle<T, L> = async_task::Task<Result<T, Payload>, Meta<L>>;

impl<T, L: Local> Output<T, L> {
    pub(super) fn new(task: Handle<T, L>) -> Self {
        Self {
            task: ManuallyDrop::new(task),
            _local: PhantomData,
        }
    }

    pub(super) fn meta(&self) -> &Meta<L> {
        self.task.metadata()
    }

    pub(crate) fn local(&self) -> &L {
        &self.meta().local
    }

    pub(crate) fn slot(&self) -> u32 {
        self.meta().slot
    }

    /// Returns whether the future was dropped and the output, if there is one, can be taken.
    pub(crate) fn is_finished(&self) -> bool {
        self.meta().state.get() != State::Alive && self.task.is_finished()
    }

    /// Polls for the task's output or panic; `None` if the task was cancelled, or the output was
    /// taken.
    #[inline]
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<Option<Result<T, Payload>>> {
        if self.has_output() {
            Poll::Ready(Some(take_output(&mut self.task)))
        } else {
            self.poll_without_output(cx.waker())
        }
    }

    #[inline]
    fn has_output(&self) -> bool {
        self.meta().state.get() == State::Ended && self.task.is_finished()
    }

    #[inline(never)]
    fn poll_without_output(&mut self, waker: &Waker) -> Poll<Option<Result<T, Payload>>> {
        if self.meta().state.get() == State::Alive {
            self.set_awaiter(waker);
        }
        match self.meta().state.get() {
            State::Alive => Poll::Pending,
            // The clone of the waker, which is user code, has run the task.
            State::Ended if self.task.is_finished() => {
                Poll::Ready(Some(take_output(&mut self.task)))
            }
            State::Ended => {
                // The wake of the awaiter calls this while the task completes: `async_task` does
                // not have the output yet.
                waker.wake_by_ref();
                Poll::Pending
            }
            State::DropPanicked => Poll::Ready(self.take_kept().map(Err)),
            State::Cancelled | State::Taken => Poll::Ready(None),
        }
    }

    /// Takes the panic of the drop of the future.
    #[cold]
    #[inline(never)]
    fn take_kept(&self) -> Option<Payload> {
        self.meta().state.set(State::Taken);
        self.local().take_kept()
    }

    /// Sets the waker that is woken when the task completes.
    fn set_awaiter(&self, waker: &Waker) {
        let before = self.meta().awaiter.take();
        let awaiter = before.filter(|awaiter| awaiter.will_wake(waker));
        let awaiter = awaiter.unwrap_or_else(|| {
            L::awaited(waker);
            waker.clone()
        });
        // The clone, and the drop of the previous waker, are user code, which may have run the task
        // to completion.
        if self.meta().state.get() == State::Alive {
            self.meta().awaiter.set(Some(awaiter));
        }
    }
}

/// Takes the output of a task that has [ended](State::Ended).
#[inline]
fn take_output<T, L: Local>(task: &mut Handle<T, L>) -> Result<T, Payload> {
    task.metadata().state.set(State::Taken);
    match Pin::new(task).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("a finished task has its output"),
    }
}

/// Detaches the task. If it has completed, its output is dropped.
impl<T, L: Local> Drop for Output<T, L> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the value is not used afterwards.
        let task = unsafe { ManuallyDrop::take(&mut self.task) };
        match task.metadata().state.get() {
            State::Cancelled | State::Taken => task.detach(),
            State::Alive | State::Ended | State::DropPanicked => let_go(task),
        }
    }
}

/// Drops the handle of a task that has an output or will have one.
#[inline(never)]
fn let_go<T: 'static, L: Local>(task: Handle<T, L>) {
    let meta = task.metadata();
    meta.is_detached.set(true);
    if meta.state.get() == State::DropPanicked {
        if let Some(payload) = meta.local.take_kept() {
            meta.report(payload);
        }
        return task.detach();
    }
    let is_alive = meta.state.get() == State::Alive;
    let own_waker = is_alive.then(|| Entry::of(meta).counted_waker());
    // The awaiter is dropped last: its drop is user code and may panic.
    let _awaiter = meta.awaiter.replace(own_waker);
    if is_alive {
        return task.detach();
    }
    // The output may own the handle of another task, and so on: the drop must not recurse deeply.
    drop_flat(Unseen(Some(task)));
}

/// The output, as a handle, of a completed task that no caller will receive.
struct Unseen<T: 'static, L: Local>(Option<Handle<T, L>>);

impl<T, L: Local> Drop for Unseen<T, L> {
    fn drop(&mut self) {
        let Some(mut task) = self.0.take() else {
            return;
        };
        if task.is_finished() {
            let output = take_output(&mut task);
            task.metadata().discard(output);
            return task.detach();
        }
        // The wake of the awaiter drops the handle: `async_task` does not have the output yet.
        let output = Self(Some(task));
        L::later(Box::new(|| drop(output)));
    }
}
