//! Tasks for futures that are not `Send`, on top of [`async_task`]: woken anywhere, polled and
//! dropped on the owner thread.
//!
//! ```text
//!   spawn ──> scheduled ── run ──> polled ── pending ──> waiting ── wake ──> scheduled
//!                │                   │
//!                │ dropped           └── ready, panic ──> Ended ── output taken ──> Taken
//!                └──> Cancelled
//! ```
//!
//! `async_task` owns the memory, the atomic state and the wakers. This module adds what it leaves
//! open, in the task's metadata ([`Meta`]) and in a wrapper around the future ([`Tracked`]):
//!
//! - A panic of a poll is the task's output. A panic that no handle will deliver is
//!   [reported](Local::unhandled).
//! - `async_task` aborts the process when the drop of a future or an output, or the wake of an
//!   awaiter panics. Here each of them runs under `catch_unwind` before `async_task` comes to it.
//! - The awaiter is kept in the metadata, without synchronization: the handle stays on the owner
//!   thread.
//! - A task can be aborted by reference: the mark is in the metadata, and the owner drops a
//!   marked [`Runnable`].
//!
//! **The owner thread** is the one that spawns the task. A [`Runnable`] may be sent to other
//! threads, but it must be run or dropped on the owner thread only: that is the promise of
//! [`Local::schedule`]. Builds with debug assertions check it.
#![allow(
    unsafe_code,
    reason = "futures that are not `Send` are spawned, and their wrapper projects a pin"
)]

mod entry;
mod output;

use std::any::Any;
use std::cell::Cell;
use std::future::Future;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

pub(crate) use self::entry::Entry;
pub(crate) use self::output::Output;

/// The payload of a panic.
pub(crate) type Payload = Box<dyn Any + Send>;

/// What a task knows of the loop it belongs to. Other threads reach it through wakers.
pub(crate) trait Local: Send + Sync + Sized + 'static {
    /// Called for each wake, on the thread of the waker. The runnable must get to the owner thread,
    /// which runs or drops it, or be forgotten.
    fn schedule(runnable: Runnable<Self>);
    /// Called, on the owner thread, with a panic that no handle will deliver.
    fn unhandled(&self, slot: u32, payload: Payload);
    /// The future is gone. Called once, on the owner thread; must not panic.
    fn ended(&self, slot: u32);
    /// Has `work` done on this thread, the owner's, once the poll that is under way has returned.
    fn later(work: Box<dyn FnOnce()>);
}

/// `async_task`'s metadata.
pub(crate) struct Meta<L> {
    local: L,
    /// Who awaits the output. `None` as soon as the future is gone.
    awaiter: Cell<Option<Waker>>,
    slot: u32,
    state: Cell<State>,
    /// The handle is gone.
    is_detached: Cell<bool>,
    /// The task is to be dropped in its next turn.
    is_aborted: Cell<bool>,
    #[cfg(debug_assertions)]
    owner: std::thread::ThreadId,
}

// SAFETY: other threads reach `local` alone, which is `Send` and `Sync`, by a `Runnable` or to drop
// the whole. The cells are touched by `Tracked`, `Output` and `Entry`, which stay on the owner
// thread. When the last waker drops the whole elsewhere, `awaiter` is `None`: it went with the
// future, and is set only while there is one.
unsafe impl<L: Send + Sync> Send for Meta<L> {}
// SAFETY: as above.
unsafe impl<L: Send + Sync> Sync for Meta<L> {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The future is there.
    Alive,
    /// The future has returned or panicked. `async_task` has the output, or will as soon as the
    /// poll returns.
    Ended,
    /// The future was dropped before it returned.
    Cancelled,
    /// The output was taken.
    Taken,
}

impl<L: Local> Meta<L> {
    /// Reports a panic. A panic of the report itself is dropped.
    fn report(&self, payload: Payload) {
        quietly(|| self.local.unhandled(self.slot, payload));
    }

    /// Drops an output; its panic, or that of the drop, is reported.
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

/// Calls `f`, whose panic goes nowhere, and neither does the one of its payload's drop. Should that
/// go on, the rest leaks.
fn quietly(f: impl FnOnce()) {
    let panicked = catch_unwind(AssertUnwindSafe(f));
    std::mem::forget(catch_unwind(AssertUnwindSafe(|| drop(panicked))));
}

/// Calls `f`. A panic, of which there is none, would abort: so the compiler knows that no caller
/// unwinds.
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

/// Makes a task out of `future`, which belongs to the calling thread and is scheduled: run, or
/// drop, the runnable.
pub(crate) fn spawn_local<F, L>(
    local: L,
    slot: u32,
    future: F,
) -> (Runnable<L>, Entry<L>, Output<F::Output, L>)
where
    F: Future + 'static,
    F::Output: 'static,
    L: Local,
{
    let meta = Meta {
        local,
        awaiter: Cell::new(None),
        slot,
        state: Cell::new(State::Alive),
        is_detached: Cell::new(false),
        is_aborted: Cell::new(false),
        #[cfg(debug_assertions)]
        owner: std::thread::current().id(),
    };
    let wrap = |meta| Tracked {
        future: ManuallyDrop::new(future),
        meta,
    };
    let builder = async_task::Builder::new().metadata(meta);
    // SAFETY: the future is not `Send`: its runnable is run and dropped on this thread only, as
    // `Local::schedule` promises; it is `'static`, and outlived by the metadata that it borrows.
    // The schedule function captures nothing. Wakers may be used anywhere, as the metadata is
    // `Send` and `Sync`.
    let (runnable, task) =
        unsafe { builder.spawn_unchecked(wrap, |runnable| L::schedule(Runnable(runnable))) };
    let entry = Entry::new(&runnable);
    (Runnable(runnable), entry, Output::new(task))
}

/// A task that was woken and waits to be polled. Dropping it drops the future: the task is
/// cancelled.
///
/// It may be sent anywhere, but must be run or dropped on the owner thread (see
/// [`Local::schedule`]).
pub(crate) struct Runnable<L: Local>(async_task::Runnable<Meta<L>>);

impl<L: Local> Runnable<L> {
    #[inline(always)]
    pub(crate) fn local(&self) -> &L {
        &self.0.metadata().local
    }

    #[inline(always)]
    pub(crate) fn slot(&self) -> u32 {
        self.0.metadata().slot
    }

    /// Whether the task is to be dropped instead of polled. On the owner thread only.
    #[inline(always)]
    pub(crate) fn is_aborted(&self) -> bool {
        self.0.metadata().is_aborted.get()
    }

    /// Polls the future once. Does not unwind: what panics is the task's output, or
    /// [reported](Local::unhandled).
    #[inline(always)]
    pub(crate) fn run(self) {
        self.0.run();
    }
}

/// The future of a task, with what is to be done at its end.
struct Tracked<'a, F: Future, L: Local> {
    /// Initialized while the state is [`State::Alive`].
    future: ManuallyDrop<F>,
    meta: &'a Meta<L>,
}

impl<F: Future, L: Local> Tracked<'_, F, L> {
    /// Drops the future where it is, if it is still there, and returns the panic of its drop. Then
    /// the task is in the state `next`.
    #[inline(always)]
    fn drop_future(&mut self, next: State) -> Result<(), Payload> {
        if self.meta.state.get() != State::Alive {
            return Ok(());
        }
        let dropped = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: there is a future, as the task is alive, which it is no more below; it is not
            // moved, as it is pinned. Nothing else changes the state, so that this is done once.
            unsafe { ManuallyDrop::drop(&mut self.future) }
        }));
        self.meta.state.set(next);
        dropped
    }

    /// Drops the future after its last poll. Returns what the handle, if there is one, will
    /// deliver. Does not unwind.
    fn end(&mut self, output: Result<F::Output, Payload>) -> Result<F::Output, Payload> {
        let dropped = self.drop_future(State::Ended);
        // Of several panics the first counts.
        let output = match (output, dropped) {
            (output, Ok(())) => output,
            (Ok(value), Err(payload)) => {
                quietly(|| drop(value));
                Err(payload)
            }
            (Err(first), Err(second)) => {
                quietly(|| drop(second));
                Err(first)
            }
        };
        if !self.meta.is_detached.get() {
            return output;
        }
        self.meta.discard(output);
        // No handle is left to see this: it only takes the place of an output.
        Err(Box::new(()))
    }
}

impl<F: Future, L: Local> Future for Tracked<'_, F, L> {
    type Output = Result<F::Output, Payload>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: the future is not moved out.
        let this = unsafe { self.get_unchecked_mut() };
        #[cfg(debug_assertions)]
        this.meta.assert_owner();
        let polled = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: it is pinned with the whole, and there: `async_task` polls no future that has
            // returned.
            unsafe { Pin::new_unchecked(&mut *this.future) }.poll(cx)
        }));
        let output = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(payload) => Err(payload),
        };
        without_unwinding(|| Poll::Ready(this.end(output)))
    }
}

/// The end of a task, whichever it is: the future goes first, then the task's place in the
/// registry; then the awaiter is woken. Does not unwind.
impl<F: Future, L: Local> Drop for Tracked<'_, F, L> {
    fn drop(&mut self) {
        let meta = self.meta;
        #[cfg(debug_assertions)]
        meta.assert_owner();
        if let Err(payload) = self.drop_future(State::Cancelled) {
            meta.report(payload);
        }
        meta.local.ended(meta.slot);
        if let Some(awaiter) = meta.awaiter.take() {
            // The waker may be of any kind, and user code.
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| awaiter.wake())) {
                meta.report(payload);
            }
        }
    }
}

#[cfg(test)]
mod tests;
