//! Tasks for futures that are not `Send`: one allocation each, woken from anywhere, polled and dropped at home.
//!
//! A task belongs to the thread that made it. Its future, its output and the waker of whoever awaits it are touched on that
//! thread only, without any synchronisation; what other threads share is one atomic word.
//!
//! ```text
//!   spawn ──> scheduled ── run ──> polled ── pending ──> waiting ── wake ──> scheduled
//!                                    ^──────────── held ────────────┘
//!                                    └── ready, panic ──> closed <── cancel ──┘
//! ```
//!
//! The word holds two flags and a count of references:
//!
//! - *scheduled*: one [`Runnable`] of the task exists, in a queue or on its way into one. A wake sets it; only the wake that
//!   finds it clear makes a runnable. `run` clears it before it polls, so a wake during the poll queues the task again.
//! - *closed*: the future is gone. Set once, on the home thread. No wake makes a runnable afterwards.
//! - *references*: one for each [`Waker`], for the [`Output`], for each [`TaskRef`], and one for being alive. The last is what
//!   keeps a runnable valid without counting it: whoever closes the task gives it up, unless the task is scheduled, in which
//!   case the runnable does when it finds the task closed. So a wake changes no count.
//!
//! A task that nobody has woken may also be [`Held`] and polled at home without being scheduled: it is *busy* then, and cannot
//! be closed.
//!
//! The last reference frees the memory, on whatever thread: nothing that belongs home is left in it by then.
//!
//! `async-task` offers the same with fewer assumptions. Not knowing that the join handle stays home, it synchronises every
//! poll with it. `tests/reference.rs` holds this against it.
#![allow(
    unsafe_code,
    reason = "the type of a task's future is erased, and its memory is shared with wakers"
)]

mod held;
mod output;
mod state;

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::future::Future;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

pub(crate) use self::held::{Held, hold};
pub(crate) use self::output::Output;
pub(crate) use self::state::TaskState;
use crate::sys::sync::{AtomicUsize, Ordering};
use crate::sys::thread::{self, ThreadToken};

const SCHEDULED: usize = 1;
const CLOSED: usize = 2;
/// One reference.
const REFERENCE: usize = 4;
/// More references than memory could hold wakers; beyond it something leaks them in a loop.
const MOST_REFERENCES: usize = usize::MAX / 2;

/// The payload of a panic.
pub(crate) type Payload = Box<dyn Any + Send>;

/// What a task carries beside its future: it knows where a woken task goes.
pub(crate) trait Metadata: Send + Sync + Sized + 'static {
    /// Called for each wake, on the thread of the waker.
    fn schedule(runnable: Runnable<Self>);
    /// Called, at home, with a panic that nobody will see. A panic of its own goes nowhere.
    fn unseen(&self, payload: Payload);
    /// Always the same static: by its address the wakers of such tasks are known.
    fn waker_table() -> &'static WakerTable<Self>;
}

/// The part of a task whose type does not depend on the future.
struct Header<M: Metadata> {
    state: AtomicUsize,
    vtable: &'static VTable<M>,
    home: ThreadToken,
    metadata: M,

    // The home thread only.
    /// Whether the body is in use: while the task is held or polled, and from the beginning of its end until it is closed.
    /// Nobody else touches the body then.
    busy: Cell<bool>,
    aborted: Cell<bool>,
    /// Whether there is an `Output`.
    joined: Cell<bool>,
    awaiter: Cell<Option<Waker>>,
}

/// A task; `repr(C)`, so that a pointer to it is one to its header.
#[repr(C)]
struct Task<F: Future, M: Metadata> {
    header: Header<M>,
    /// The home thread only.
    body: UnsafeCell<Body<F>>,
}

enum Body<F: Future> {
    Future(F),
    /// The payload is boxed once more: a panic is rare, and eight bytes less in every task are not.
    Output(Result<F::Output, Box<Payload>>),
    Empty,
}

/// The functions that know the type of the future. All take a pointer to a live task of that type.
struct VTable<M: Metadata> {
    /// Polls the future. `true`: it is over, the output, or the panic, has taken its place, and the task stays busy for the
    /// caller to close. Home thread, not closed, and not busy but by the caller.
    poll: unsafe fn(NonNull<Header<M>>) -> bool,
    /// Drops the future or the output. Returns the panic of that drop, or an output that was a panic. Home thread; the task is
    /// closed, or the caller has marked it busy.
    clear: unsafe fn(NonNull<Header<M>>) -> Option<Payload>,
    /// Moves the output to the `Option<Result<T, Payload>>` it is given. Home thread, closed.
    take: unsafe fn(NonNull<Header<M>>, *mut ()),
    /// Frees the memory. No other reference is left, the body is empty.
    free: unsafe fn(NonNull<Header<M>>),
}

/// The functions of the wakers of tasks with this metadata, and no others.
pub(crate) struct WakerTable<M> {
    /// Each takes the pointer of a live task, by the reference of the waker.
    functions: RawWakerVTable,
    of: PhantomData<fn(M)>,
}

impl<M: Metadata> WakerTable<M> {
    pub(crate) const fn new() -> Self {
        Self {
            functions: RawWakerVTable::new(
                clone_waker::<M>,
                wake::<M>,
                wake_by_ref::<M>,
                drop_waker::<M>,
            ),
            of: PhantomData,
        }
    }
}

impl<F: Future, M: Metadata> Task<F, M> {
    const VTABLE: &'static VTable<M> = &VTable {
        poll: Self::poll,
        clear: Self::clear,
        take: Self::take,
        free: Self::free,
    };

    /// # Safety
    ///
    /// As [`VTable::poll`].
    unsafe fn poll(header: NonNull<Header<M>>) -> bool {
        // SAFETY: the caller passes a live task of this type; shared access only.
        let task = unsafe { header.cast::<Self>().as_ref() };
        // SAFETY: these functions treat the pointer as that of a live task, which it is until the poll is over. No reference
        // is counted for this waker, and `ManuallyDrop` gives none back; clones count for themselves.
        let waker = ManuallyDrop::new(unsafe {
            Waker::from_raw(RawWaker::new(
                header.as_ptr().cast(),
                &M::waker_table().functions,
            ))
        });
        let mut cx = Context::from_waker(&waker);
        task.header.busy.set(true);
        let polled = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: on the home thread, with `busy` set, nobody else touches the body (`clear` and `take` are not called
            // then, and a task is not run from inside its own poll).
            match unsafe { &mut *task.body.get() } {
                // SAFETY: the future is never moved: it is dropped where it is.
                Body::Future(future) => unsafe { Pin::new_unchecked(future) }.poll(&mut cx),
                Body::Output(_) | Body::Empty => unreachable!("a closed task is not polled"),
            }
        }));
        let output = match polled {
            Ok(Poll::Pending) => {
                task.header.busy.set(false);
                return false;
            }
            Ok(Poll::Ready(output)) => Ok(output),
            Err(payload) => Err(payload),
        };
        // SAFETY: as above; the poll is over, and the body still this caller's.
        unsafe { task.finish(output) };
        true
    }

    /// Drops the future where it is and puts its output, or its panic, in its place. Of several panics the first counts.
    ///
    /// # Safety
    ///
    /// Home thread, busy, the body is a future, and no reference to it is in use.
    unsafe fn finish(&self, output: Result<F::Output, Payload>) {
        let place = self.body.get();
        let dropped = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the body is initialised; whether its drop panics or not, it is overwritten next and not dropped again.
            unsafe { place.drop_in_place() }
        }));
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
        // SAFETY: the place is valid and its old value gone.
        unsafe { place.write(Body::Output(output.map_err(Box::new))) };
    }

    /// # Safety
    ///
    /// As [`VTable::clear`].
    unsafe fn clear(header: NonNull<Header<M>>) -> Option<Payload> {
        // SAFETY: the caller passes a live task of this type; shared access only.
        let place = unsafe { header.cast::<Self>().as_ref() }.body.get();
        // SAFETY: on the home thread, and busy or closed, nobody else touches the body.
        match unsafe { &mut *place } {
            Body::Empty => return None,
            // Moving it is fine: an output is not pinned.
            body @ Body::Output(Err(_)) => match std::mem::replace(body, Body::Empty) {
                Body::Output(Err(payload)) => return Some(*payload),
                _ => unreachable!("matched above"),
            },
            Body::Future(_) | Body::Output(Ok(_)) => {}
        }
        let dropped = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the body is initialised; whether its drop panics or not, it is overwritten next and not dropped again.
            unsafe { place.drop_in_place() }
        }));
        // SAFETY: the place is valid and its old value gone.
        unsafe { place.write(Body::Empty) };
        dropped.err()
    }

    /// # Safety
    ///
    /// As [`VTable::take`], and `out` points to an `Option<Result<F::Output, Payload>>`.
    unsafe fn take(header: NonNull<Header<M>>, out: *mut ()) {
        // SAFETY: the caller passes a live task of this type; shared access only.
        let task = unsafe { header.cast::<Self>().as_ref() };
        // SAFETY: on the home thread and closed, nobody else touches the body.
        let body = unsafe { &mut *task.body.get() };
        if matches!(body, Body::Output(_)) {
            // Moving it is fine: an output is not pinned, and the future is gone.
            if let Body::Output(output) = std::mem::replace(body, Body::Empty) {
                // SAFETY: the caller's promise.
                unsafe {
                    *out.cast::<Option<Result<F::Output, Payload>>>() =
                        Some(output.map_err(|payload| *payload))
                };
            }
        }
    }

    /// # Safety
    ///
    /// As [`VTable::free`].
    unsafe fn free(header: NonNull<Header<M>>) {
        // SAFETY: the task was made by `Box` with this very type, and this is the last pointer to it.
        drop(unsafe { Box::from_raw(header.cast::<Self>().as_ptr()) });
    }
}

/// Makes a task out of `future`. It belongs to the calling thread, and is scheduled: run, or drop, the runnable.
pub(crate) fn spawn_local<F, M>(
    metadata: M,
    future: F,
) -> (Runnable<M>, TaskRef<M>, Output<F::Output, M>)
where
    F: Future + 'static,
    F::Output: 'static,
    M: Metadata,
{
    let task = Box::new(Task {
        header: Header {
            // Alive, `TaskRef`, `Output`.
            state: AtomicUsize::new(SCHEDULED | (3 * REFERENCE)),
            vtable: Task::<F, M>::VTABLE,
            home: thread::token(),
            metadata,
            busy: Cell::new(false),
            aborted: Cell::new(false),
            joined: Cell::new(true),
            awaiter: Cell::new(None),
        },
        body: UnsafeCell::new(Body::Future(future)),
    });
    let pointer = NonNull::from(Box::leak(task)).cast::<Header<M>>();
    // SAFETY: the future of this task returns an `F::Output`, and one of its references is for this.
    let output = unsafe { Output::new(pointer) };
    (Runnable(pointer), TaskRef { pointer }, output)
}

impl<M: Metadata> Header<M> {
    fn is_home(&self) -> bool {
        self.home == thread::token()
    }

    fn is_closed(&self) -> bool {
        // Set on the home thread, and asked there.
        self.state.load(Ordering::Relaxed) & CLOSED != 0
    }
}

/// Calls `f`, whose panic goes nowhere, and neither does the one of its payload's drop. Should that go on, the rest leaks.
fn quietly(f: impl FnOnce()) {
    let panicked = catch_unwind(AssertUnwindSafe(f));
    std::mem::forget(catch_unwind(AssertUnwindSafe(|| drop(panicked))));
}

/// Gives references up; the last one frees the task.
///
/// # Safety
///
/// The caller owns so many references to the live task and does not use the pointer afterwards.
unsafe fn release<M: Metadata>(pointer: NonNull<Header<M>>, references: usize) {
    // SAFETY: live by the caller's references.
    let header = unsafe { pointer.as_ref() };
    let (free, given) = (header.vtable.free, references * REFERENCE);
    let before = header.state.fetch_sub(given, Ordering::Release);
    if before < given + REFERENCE {
        // Pairs with the `Release` of the others: what they did happened before. A fence that ThreadSanitizer understands.
        header.state.load(Ordering::Acquire);
        // SAFETY: that was the last reference. The task is closed, as being alive is a reference, and its output is gone, as
        // the `Output` is one: the body is empty.
        unsafe { free(pointer) };
    }
}

/// Marks the task closed, wakes who awaits it, and gives up the reference for being alive, or leaves it to the runnable
/// there is.
///
/// # Safety
///
/// Home thread; the task is live, busy and not closed; the future is gone. The pointer may dangle afterwards unless the
/// caller owns a reference.
unsafe fn close<M: Metadata>(pointer: NonNull<Header<M>>) {
    // SAFETY: live by the caller's promise.
    let header = unsafe { pointer.as_ref() };
    let awaiter = header.awaiter.take();
    // With a reference for the time of this function. The flag is clear, so that adding it sets it.
    let before = header.state.fetch_add(CLOSED + REFERENCE, Ordering::AcqRel);
    if let Some(awaiter) = awaiter {
        // Anybody's code, which must not keep the caller from what it does about the end of a task.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| awaiter.wake())) {
            quietly(|| header.metadata.unseen(payload));
        }
    }
    let references = if before & SCHEDULED == 0 { 2 } else { 1 };
    // SAFETY: the reference for being alive is nobody else's, unless there is a runnable; the other one is from above.
    unsafe { release(pointer, references) };
}

/// Drops the future of a task that is not closed, closes it and wakes who awaits it. Does not unwind.
///
/// # Safety
///
/// Home thread; the task is live, not closed, and not busy but by the caller. The pointer may dangle afterwards unless the
/// caller owns a reference.
unsafe fn cancel<M: Metadata>(pointer: NonNull<Header<M>>) {
    // A drop that reaches back to this task must not begin all over.
    // SAFETY: live by the caller's promise.
    unsafe { pointer.as_ref() }.busy.set(true);
    // SAFETY: on the home thread, live until it is closed, and busy; then the future is gone.
    unsafe {
        clear(pointer);
        close(pointer);
    }
}

/// Drops the future or the output. A panic that nobody has seen, of the task or of this drop, is reported. Does not unwind.
///
/// # Safety
///
/// Home thread; the task is live; it is closed, or the caller has marked it busy.
unsafe fn clear<M: Metadata>(pointer: NonNull<Header<M>>) {
    // SAFETY: the caller's promise.
    let header = unsafe { pointer.as_ref() };
    // SAFETY: the same.
    if let Some(payload) = unsafe { (header.vtable.clear)(pointer) } {
        quietly(|| header.metadata.unseen(payload));
    }
}

/// Polls the future once. Does not unwind.
///
/// # Safety
///
/// Home thread; the task is live and not closed, and nobody but the caller uses its body. The pointer may dangle afterwards
/// unless the caller owns a reference.
#[inline(always)]
unsafe fn poll<M: Metadata>(pointer: NonNull<Header<M>>) -> Outcome {
    // SAFETY: the caller's promise.
    let header = unsafe { pointer.as_ref() };
    // SAFETY: the same.
    if !unsafe { (header.vtable.poll)(pointer) } {
        return Outcome::Pending;
    }
    // SAFETY: the poll has replaced the future and left the task busy, all else is as it was.
    unsafe { finish(pointer) };
    Outcome::Closed
}

/// Closes a task after its last poll. Apart, since most polls are not that.
///
/// # Safety
///
/// As [`close`].
#[inline(never)]
unsafe fn finish<M: Metadata>(pointer: NonNull<Header<M>>) {
    // SAFETY: live by the caller's promise.
    if !unsafe { pointer.as_ref() }.joined.get() {
        // SAFETY: at home, live, busy.
        unsafe { clear(pointer) };
    }
    // SAFETY: the caller's promise.
    unsafe { close(pointer) };
}

/// A task that was woken and waits to be polled. May be sent to any thread; does its work at home only.
///
/// Dropping it at home drops the future and closes the task. Dropped elsewhere, or while the future is polled or dropped, it
/// is a wake that is lost.
pub(crate) struct Runnable<M: Metadata>(NonNull<Header<M>>);

// SAFETY: away from home only the atomic word and the metadata, which is `Send` and `Sync`, are touched.
unsafe impl<M: Metadata> Send for Runnable<M> {}

/// What became of a task that was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Pending,
    Closed,
}

impl<M: Metadata> Runnable<M> {
    pub(crate) fn metadata(&self) -> &M {
        // SAFETY: a runnable keeps its task live: the reference for being alive is given up by it, if the task is closed.
        unsafe { &self.0.as_ref().metadata }
    }

    /// Whether the task will be dropped instead of polled. Away from home nobody can tell.
    pub(crate) fn is_aborted(&self) -> bool {
        // SAFETY: as in `metadata`.
        let header = unsafe { self.0.as_ref() };
        header.is_home() && header.aborted.get()
    }

    /// Polls the future once, or drops it if the task was aborted. Does not unwind: what panics is the task's output, or
    /// [unseen](Metadata::unseen).
    ///
    /// Away from home, and for a task that is closed, it does nothing and says `Pending`.
    #[inline(always)]
    pub(crate) fn run(self) -> Outcome {
        let pointer = self.0;
        // SAFETY: as in `metadata`.
        let header = unsafe { pointer.as_ref() };
        if !header.is_home() {
            return Outcome::Pending;
        }
        std::mem::forget(self);
        // Before the poll: a wake from now on must queue the task again. `Acquire`: see what was done before the wake.
        let before = header.state.fetch_and(!SCHEDULED, Ordering::AcqRel);
        if before & CLOSED != 0 {
            // SAFETY: closed while scheduled: the reference for being alive is this runnable's.
            unsafe { release(pointer, 1) };
            return Outcome::Pending;
        }
        assert!(!header.busy.get(), "a task is run from inside itself");
        if header.aborted.get() {
            // SAFETY: at home, live, not closed, not busy.
            unsafe { cancel(pointer) };
            return Outcome::Closed;
        }
        // SAFETY: at home, live, not closed, not busy.
        unsafe { poll(pointer) }
    }
}

impl<M: Metadata> Drop for Runnable<M> {
    fn drop(&mut self) {
        let pointer = self.0;
        // SAFETY: as in `metadata`.
        let header = unsafe { pointer.as_ref() };
        let is_home = header.is_home();
        let before = header.state.fetch_and(!SCHEDULED, Ordering::AcqRel);
        if before & CLOSED != 0 {
            // SAFETY: closed while scheduled: the reference for being alive is this runnable's.
            unsafe { release(pointer, 1) };
        } else if is_home && !header.busy.get() {
            // SAFETY: at home, where nobody else can have closed it, so live and not closed; not busy.
            unsafe { cancel(pointer) };
        }
        // Else the future stays. Away from home the pointer may dangle by now.
    }
}

/// A hold on a task, for its home thread.
pub(crate) struct TaskRef<M: Metadata> {
    /// Neither `Send` nor `Sync`: stays home.
    pointer: NonNull<Header<M>>,
}

impl<M: Metadata> TaskRef<M> {
    fn header(&self) -> &Header<M> {
        // SAFETY: live by this reference.
        unsafe { self.pointer.as_ref() }
    }

    pub(crate) fn metadata(&self) -> &M {
        &self.header().metadata
    }

    /// Has the task dropped, instead of polled, in its next turn.
    pub(crate) fn abort(&self) {
        let header = self.header();
        if !header.is_closed() && !header.aborted.replace(true) {
            // SAFETY: live by this reference.
            unsafe { wake_by_ref::<M>(self.pointer.as_ptr().cast_const().cast()) };
        }
    }

    /// Drops the future at once, unless it is being polled or dropped.
    pub(crate) fn cancel(&self) {
        if !self.header().is_closed() && !self.header().busy.get() {
            // SAFETY: at home, as a `TaskRef` does not leave it; live by this reference; not closed, not busy.
            unsafe { cancel(self.pointer) };
        }
    }
}

impl<M: Metadata> Clone for TaskRef<M> {
    fn clone(&self) -> Self {
        add_reference(&self.header().state);
        Self {
            pointer: self.pointer,
        }
    }
}

impl<M: Metadata> Drop for TaskRef<M> {
    fn drop(&mut self) {
        // SAFETY: this reference is not used afterwards.
        unsafe { release(self.pointer, 1) };
    }
}

fn add_reference(state: &AtomicUsize) {
    if state.fetch_add(REFERENCE, Ordering::Relaxed) > MOST_REFERENCES {
        std::process::abort();
    }
}

/// What the pointer of a waker points to.
///
/// # Safety
///
/// The pointer is that of a waker of a task.
#[inline(always)]
unsafe fn header_of<M: Metadata>(pointer: *const ()) -> NonNull<Header<M>> {
    // SAFETY: the pointer of a task is not null.
    unsafe { NonNull::new_unchecked(pointer.cast_mut().cast()) }
}

/// # Safety
///
/// As [`WakerTable::functions`].
unsafe fn clone_waker<M: Metadata>(pointer: *const ()) -> RawWaker {
    // SAFETY: live by the waker that is cloned, or, in a poll, by that.
    let header = unsafe { header_of::<M>(pointer).as_ref() };
    add_reference(&header.state);
    RawWaker::new(pointer, &M::waker_table().functions)
}

/// # Safety
///
/// As [`WakerTable::functions`].
unsafe fn wake_by_ref<M: Metadata>(pointer: *const ()) {
    // SAFETY: the pointer of a waker.
    let header = unsafe { header_of::<M>(pointer) };
    // SAFETY: live by the waker.
    let state = unsafe { &header.as_ref().state };
    // `Release`: the poll sees what was done before the wake.
    if state.fetch_or(SCHEDULED, Ordering::AcqRel) & (SCHEDULED | CLOSED) == 0 {
        M::schedule(Runnable(header));
    }
}

/// # Safety
///
/// As [`WakerTable::functions`]; the waker's reference is given up.
unsafe fn wake<M: Metadata>(pointer: *const ()) {
    // SAFETY: as the caller promised.
    unsafe {
        wake_by_ref::<M>(pointer);
        drop_waker::<M>(pointer);
    }
}

/// # Safety
///
/// As [`WakerTable::functions`]; the waker's reference is given up.
unsafe fn drop_waker<M: Metadata>(pointer: *const ()) {
    // SAFETY: as the caller promised.
    unsafe { release(header_of::<M>(pointer), 1) };
}

#[cfg(all(test, phaseloop_loom))]
mod models;
#[cfg(all(test, not(phaseloop_loom)))]
mod tests;
