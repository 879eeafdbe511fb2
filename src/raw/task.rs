//! Tasks for futures that are not `Send`, on top of [`async_task`]. Any thread may wake them; the
//! owner thread polls and drops them.
//!
//! ```text
//!   spawn ──> scheduled ── run ──> polled ── pending ──> waiting ── wake ──> scheduled
//!                │                   │
//!                │ dropped           └── ready, panic ──> Ended ── output taken ──> Taken
//!                └──> Cancelled, DropPanicked
//! ```
//!
//! `async_task` owns the memory, the atomic state and the wakers. This module adds the following,
//! in the task's metadata ([`Meta`]) and in a wrapper around the future ([`Tracked`]):
//!
//! - A panic of a poll is the task's output. A panic that no handle will return is
//!   [reported](Local::unhandled).
//! - `async_task` aborts the process if the drop of a future or an output, or the wake of an
//!   awaiter, panics. Here each of them runs under `catch_unwind` before `async_task` would run it.
//! - The awaiter is kept in the metadata without synchronization, since the handle stays on the
//!   owner thread.
//! - A task can be woken and aborted through an [`Entry`], a pointer without a count. The mark of
//!   an abort is in the metadata, and the owner thread drops a marked [`Runnable`].
//!
//! **The owner thread** is the thread that spawns the task. A [`Runnable`] may be sent to other
//! threads, but only the owner thread may run or drop it: that is the contract of
//! [`Local::schedule`]. Builds with debug assertions check it. The contract of [`Local::ended`] is
//! that no entry is used afterwards.
// Marks: each poll of a task passes them (rows `self_wake/1`, `spawn_join`), and no unwinding code
// is left where nothing panics.
#![allow(
    unsafe_code,
    reason = "futures that are not `Send` are spawned, and their wrapper projects a pin"
)]

mod entry;
mod main_task;
mod output;
mod state;
mod task_ref;
mod wakers;

use std::any::Any;
use std::cell::Cell;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, RawWakerVTable, Waker};

use async_task::{ScheduleInfo, WithInfo};

pub(crate) use self::entry::Entry;
pub(crate) use self::main_task::with_scoped;
pub(crate) use self::output::Output;
use self::state::{State, StateCell};
pub(crate) use self::task_ref::TaskRef;
pub(crate) use self::wakers::WakerKinds;
#[cfg(feature = "stacks")]
use super::stack_poll;
use super::unwind::ignore_panic;

/// The payload of a panic.
pub type Payload = Box<dyn Any + Send>;

/// The data of a task about its loop. Other threads reach it through wakers.
pub(crate) trait Local: Send + Sync + Sized + 'static {
    /// Schedules a woken task, on the thread of the wake. The runnable must be sent to the owner
    /// thread, which runs or drops it, or be forgotten.
    fn schedule(runnable: Runnable<Self>);
    /// Does what [`schedule`](Self::schedule) does, for a task that was woken while it was polled.
    /// It is called on the owner thread, once the poll has returned.
    fn schedule_again(runnable: Runnable<Self>);
    /// Reports, on the owner thread, a panic that no handle will return.
    fn unhandled(&self, slot: u32, payload: Payload);
    /// Keeps, on the owner thread, the panic of a future that was dropped before it returned. It
    /// does not panic.
    fn keep(&self, payload: Payload);
    /// Takes the panic that [`keep`](Self::keep) has kept for this task.
    fn take_kept(&self) -> Option<Payload>;
    /// Notes a waker that awaits the output of a task, on the owner thread.
    fn awaited(_waker: &Waker) {}
    /// Forgets the [`Entry`] of a task, whose future was dropped. It is called once, on the owner
    /// thread, and must not panic.
    fn ended(&self, slot: u32);
    /// Defers `work` on the owner thread until the current poll has returned.
    fn later(work: Box<dyn FnOnce()>);
}

/// The metadata of a task in `async_task`.
pub(crate) struct Meta<L> {
    local: L,
    /// The waker that awaits the output. A detached task, which has no awaiter, has a waker of its
    /// own here: `async_task` would drop a task that has neither a handle nor wakers. `None` once
    /// the future was dropped.
    awaiter: Cell<Option<Waker>>,
    /// The functions of the task's wakers.
    waker_vtable: Cell<&'static RawWakerVTable>,
    slot: u32,
    /// The distance from the data pointer of the task's wakers to this metadata.
    bytes_before: Cell<u8>,
    state: StateCell,
    /// The handle was dropped.
    is_detached: Cell<bool>,
    /// The task is to be dropped in place of its next poll.
    is_aborted: Cell<bool>,
    #[cfg(debug_assertions)]
    owner: std::thread::ThreadId,
}

// SAFETY: other threads access only `local`, which is `Send` and `Sync`, and `state`, which is
// atomic, through a `Runnable` or a `TaskRef`, or when they drop the metadata. The cells are
// accessed by `Tracked`, `Output` and `Entry`, which stay on the owner thread. When the last waker
// drops the metadata on another thread, `awaiter` is `None`: it was dropped with the future, and is
// set only while there is one.
unsafe impl<L: Send + Sync> Send for Meta<L> {}
// SAFETY: the reason for `Send` applies to `Sync`, too.
unsafe impl<L: Send + Sync> Sync for Meta<L> {}

impl<L: Local> Meta<L> {
    fn new(local: L, slot: u32) -> Self {
        Self {
            local,
            awaiter: Cell::new(None),
            waker_vtable: Cell::new(Waker::noop().vtable()),
            slot,
            bytes_before: Cell::new(0),
            state: StateCell::new(),
            is_detached: Cell::new(false),
            is_aborted: Cell::new(false),
            #[cfg(debug_assertions)]
            owner: std::thread::current().id(),
        }
    }

    /// Reports a panic. A panic of the report itself is ignored.
    fn report(&self, payload: Payload) {
        ignore_panic(|| self.local.unhandled(self.slot, payload));
    }

    /// Drops an output and reports its panic, or the panic of the drop.
    fn discard<T>(&self, output: Result<T, Payload>) {
        let dropped = output.and_then(|value| catch_unwind(AssertUnwindSafe(|| drop(value))));
        if let Err(payload) = dropped {
            self.report(payload);
        }
    }

    #[cfg(debug_assertions)]
    fn assert_owner(&self) {
        let here = std::thread::current().id();
        assert_eq!(self.owner, here, "a task left its owner thread");
    }
}

/// Calls `f`, which does not panic. A panic would abort, so the compiler can omit the unwinding
/// code of the callers.
#[inline(always)]
fn without_unwinding<T>(f: impl FnOnce() -> T) -> T {
    struct AbortOnUnwind;
    impl Drop for AbortOnUnwind {
        fn drop(&mut self) {
            std::process::abort();
        }
    }

    let guard = AbortOnUnwind;
    let value = f();
    std::mem::forget(guard);
    value
}

/// Creates a task from `future`. The calling thread is its owner thread, and must run or drop the
/// returned runnable.
pub(crate) fn spawn_local<F, L>(
    local: L,
    slot: u32,
    future: F,
    wakers: &WakerKinds<L>,
) -> (Runnable<L>, Entry<L>, Output<F::Output, L>)
where
    F: Future + 'static,
    F::Output: 'static,
    L: Local,
{
    let meta = Meta::new(local, slot);
    let wrap = |meta| Tracked {
        future: ManuallyDrop::new(future),
        meta,
    };
    let builder = async_task::Builder::new().metadata(meta);
    let schedule = |runnable, info: ScheduleInfo| {
        if info.woken_while_running {
            L::schedule_again(Runnable(runnable));
        } else {
            L::schedule(Runnable(runnable));
        }
    };
    // SAFETY: the future is not `Send`, but its runnable is run and dropped on this thread only, by
    // the contract of `Local::schedule`. The future is `'static`, and the metadata that it borrows
    // outlives it. The schedule function captures nothing. Wakers may be used on any thread, since
    // the metadata is `Send` and `Sync`.
    let (runnable, task) = unsafe { builder.spawn_unchecked(wrap, WithInfo(schedule)) };
    let raw = runnable.into_raw();
    // For the wakers of the entry.
    raw.as_ptr().expose_provenance();
    // SAFETY: the pointer is that of `into_raw`, and is used once.
    let runnable = unsafe { async_task::Runnable::<Meta<L>>::from_raw(raw) };
    let entry = Entry::new(&runnable, wakers.get::<F>(&runnable));
    (Runnable(runnable), entry, Output::new(task))
}

/// A woken task that is to be polled. Dropping it drops the future and cancels the task.
///
/// It may be sent to any thread, but must be run or dropped on the owner thread (see
/// [`Local::schedule`]).
pub(crate) struct Runnable<L: Local>(async_task::Runnable<Meta<L>>);

impl<L: Local> Runnable<L> {
    #[inline]
    pub(crate) fn local(&self) -> &L {
        &self.0.metadata().local
    }

    #[inline]
    pub(crate) fn slot(&self) -> u32 {
        self.0.metadata().slot
    }

    /// Returns whether the task is to be dropped instead of polled. Only the owner thread may call
    /// it.
    #[inline]
    pub(crate) fn is_aborted(&self) -> bool {
        self.0.metadata().is_aborted.get()
    }

    /// Polls the future once. It does not unwind: a panic becomes the task's output, or is
    /// [reported](Local::unhandled).
    #[inline]
    pub(crate) fn run(self) {
        self.0.run();
    }
}

/// The future of a task, with the steps that follow its completion.
struct Tracked<'a, F: Future, L: Local> {
    /// The future, initialized while the state is [`State::Alive`].
    future: ManuallyDrop<F>,
    meta: &'a Meta<L>,
}

impl<F: Future, L: Local> Tracked<'_, F, L> {
    /// Drops the future in place, if it is alive, and returns the panic of its drop. Sets the state
    /// to `next`.
    #[inline(always)]
    fn drop_future(&mut self, next: State) -> Result<(), Payload> {
        if self.meta.state.get() != State::Alive {
            return Ok(());
        }
        let dropped = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the state says that the future is alive, and changes below, so that this is
            // done once. The future is dropped in place, since it is pinned.
            unsafe { ManuallyDrop::drop(&mut self.future) }
        }));
        self.meta.state.set(next);
        dropped
    }

    /// Drops the future after its last poll, and returns what the handle, if there is one, will
    /// return. It does not unwind.
    fn end(&mut self, output: Result<F::Output, Payload>) -> Result<F::Output, Payload> {
        let dropped = self.drop_future(State::Ended);
        // The first of several panics is the output.
        let output = match (output, dropped) {
            (output, Ok(())) => output,
            (Ok(value), Err(payload)) => {
                ignore_panic(|| drop(value));
                Err(payload)
            }
            (Err(first), Err(second)) => {
                ignore_panic(|| drop(second));
                Err(first)
            }
        };
        if !self.meta.is_detached.get() {
            return output;
        }
        self.meta.discard(output);
        // Without a handle this value is never returned; it only stands in for an output.
        Err(Box::new(()))
    }
}

impl<F: Future, L: Local> Future for Tracked<'_, F, L> {
    type Output = Result<F::Output, Payload>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: the future is not moved.
        let this = unsafe { self.get_unchecked_mut() };
        #[cfg(debug_assertions)]
        this.meta.assert_owner();
        let polled = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the future is pinned with this struct, and is alive: `async_task` does not
            // poll a future that has returned.
            let future = unsafe { Pin::new_unchecked(&mut *this.future) };
            #[cfg(feature = "stacks")]
            return stack_poll::poll_with(cx, |cx| future.poll(cx));
            #[cfg(not(feature = "stacks"))]
            future.poll(cx)
        }));
        let output = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(payload) => Err(payload),
        };
        without_unwinding(|| Poll::Ready(this.end(output)))
    }
}

/// Ends the task in every case: the future is dropped first, then the task leaves the registry,
/// then the awaiter is woken. It does not unwind.
impl<F: Future, L: Local> Drop for Tracked<'_, F, L> {
    fn drop(&mut self) {
        let meta = self.meta;
        #[cfg(debug_assertions)]
        meta.assert_owner();
        if let Err(payload) = self.drop_future(State::Cancelled) {
            if meta.is_detached.get() {
                meta.report(payload);
            } else {
                meta.local.keep(payload);
                meta.state.set(State::DropPanicked);
            }
        }
        meta.local.ended(meta.slot);
        match meta.awaiter.take() {
            Some(own) if meta.is_detached.get() => drop(own),
            Some(awaiter) => {
                // The waker may be of any executor, and may run user code.
                if let Err(payload) = catch_unwind(AssertUnwindSafe(|| awaiter.wake())) {
                    meta.report(payload);
                }
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
