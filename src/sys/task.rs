//! Tasks for futures that are not `Send`: one allocation each, woken from anywhere, polled and dropped at home.
//!
//! A task belongs to the thread that made it. Its future, its output and the waker of whoever awaits it are touched on that
//! thread only, without any synchronisation; what other threads share is one atomic word.
//!
//! ```text
//!   spawn ──> scheduled ── run ──> polled ── pending ──> waiting ── wake ──> scheduled
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
//! The last reference frees the memory, on whatever thread: nothing that belongs home is left in it by then.
//!
//! `async-task` offers the same with fewer assumptions. Not knowing that the join handle stays home, it synchronises every
//! poll with it and takes 95 instructions for a wake and a poll where this takes about 40.
#![allow(
    unsafe_code,
    reason = "the type of a task's future is erased, and its memory is shared with wakers"
)]

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::future::Future;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};

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
    /// Called, at home, with a panic that nobody will see.
    fn unseen(&self, payload: Payload);
}

/// The part of a task whose type does not depend on the future.
struct Header<M: Metadata> {
    state: AtomicUsize,
    vtable: &'static VTable<M>,
    home: ThreadToken,
    metadata: M,

    // The home thread only.
    /// Whether the future is being polled, and must not be dropped.
    polling: Cell<bool>,
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
    Output(Result<F::Output, Payload>),
    Empty,
}

/// The functions that know the type of the future. All take a pointer to a live task of that type.
struct VTable<M: Metadata> {
    /// Polls the future. `true`: it is over, and the output, or the panic, has taken its place. Home thread, not closed.
    poll: unsafe fn(NonNull<Header<M>>) -> bool,
    /// Drops the future or the output. Returns the panic of that drop, or an output that was a panic. Home thread, not while
    /// polling.
    clear: unsafe fn(NonNull<Header<M>>) -> Option<Payload>,
    /// Moves the output to the `Option<Result<T, Payload>>` it is given. Home thread, closed.
    take: unsafe fn(NonNull<Header<M>>, *mut ()),
    /// Frees the memory. No other reference is left, the body is empty.
    free: unsafe fn(NonNull<Header<M>>),
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
        // SAFETY: the vtable below treats the pointer as the header of a live task. No reference is counted for this waker,
        // and `ManuallyDrop` gives none back; clones count for themselves.
        let waker = ManuallyDrop::new(unsafe {
            Waker::from_raw(RawWaker::new(header.as_ptr().cast(), waker_vtable::<M>()))
        });
        let mut cx = Context::from_waker(&waker);
        task.header.polling.set(true);
        let polled = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: on the home thread, with `polling` set, nobody else touches the body (`clear` and `take` are not
            // called then, and a task is not run from inside its own poll).
            match unsafe { &mut *task.body.get() } {
                // SAFETY: the future is never moved: it is dropped where it is.
                Body::Future(future) => unsafe { Pin::new_unchecked(future) }.poll(&mut cx),
                Body::Output(_) | Body::Empty => unreachable!("a closed task is not polled"),
            }
        }));
        task.header.polling.set(false);
        let output = match polled {
            Ok(Poll::Pending) => return false,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(payload) => Err(payload),
        };
        // SAFETY: as above; the poll is over.
        unsafe { task.finish(output) };
        true
    }

    /// Drops the future where it is and puts its output, or its panic, in its place.
    ///
    /// # Safety
    ///
    /// Home thread, the body is a future, and no reference to it is in use.
    unsafe fn finish(&self, output: Result<F::Output, Payload>) {
        let place = self.body.get();
        let dropped = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the body is initialised; whether its drop panics or not, it is overwritten next and not dropped again.
            unsafe { place.drop_in_place() }
        }));
        let output = match dropped {
            Ok(()) => output,
            Err(payload) => Err(payload),
        };
        // SAFETY: the place is valid and its old value gone.
        unsafe { place.write(Body::Output(output)) };
    }

    /// # Safety
    ///
    /// As [`VTable::clear`].
    unsafe fn clear(header: NonNull<Header<M>>) -> Option<Payload> {
        // SAFETY: the caller passes a live task of this type; shared access only.
        let place = unsafe { header.cast::<Self>().as_ref() }.body.get();
        // SAFETY: on the home thread and not polling, nobody else touches the body.
        match unsafe { &mut *place } {
            Body::Empty => return None,
            // Moving it is fine: an output is not pinned.
            body @ Body::Output(Err(_)) => match std::mem::replace(body, Body::Empty) {
                Body::Output(Err(payload)) => return Some(payload),
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
                unsafe { *out.cast::<Option<Result<F::Output, Payload>>>() = Some(output) };
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
            polling: Cell::new(false),
            aborted: Cell::new(false),
            joined: Cell::new(true),
            awaiter: Cell::new(None),
        },
        body: UnsafeCell::new(Body::Future(future)),
    });
    let pointer = NonNull::from(Box::leak(task)).cast::<Header<M>>();
    (
        Runnable(pointer),
        TaskRef {
            pointer,
            home_only: PhantomData,
        },
        Output {
            pointer,
            output: PhantomData,
        },
    )
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

/// Gives one reference up; the last one frees the task.
///
/// # Safety
///
/// The caller owns one reference to the live task and does not use the pointer afterwards.
unsafe fn release<M: Metadata>(pointer: NonNull<Header<M>>) {
    // SAFETY: live by the caller's reference.
    let (before, free) = unsafe {
        let header = pointer.as_ref();
        let free = header.vtable.free;
        (header.state.fetch_sub(REFERENCE, Ordering::Release), free)
    };
    if before < 2 * REFERENCE {
        // Pairs with the `Release` of the others: what they did with the task happened before it is freed.
        fence(Ordering::Acquire);
        // SAFETY: that was the last reference. The task is closed, as being alive is a reference, and its output is gone, as
        // the `Output` is one: the body is empty.
        unsafe { free(pointer) };
    }
}

/// Marks the task closed and gives up the reference for being alive, or leaves it to the runnable there is.
///
/// # Safety
///
/// Home thread; the task is live and not closed; the future is gone. The pointer may dangle afterwards unless the caller
/// owns a reference.
unsafe fn close<M: Metadata>(pointer: NonNull<Header<M>>) {
    // SAFETY: live by the caller's promise.
    let before = unsafe { pointer.as_ref() }
        .state
        .fetch_or(CLOSED, Ordering::AcqRel);
    if before & SCHEDULED == 0 {
        // SAFETY: the reference for being alive is nobody else's.
        unsafe { release(pointer) };
    }
}

/// Drops the future of a task that is not closed, closes it and returns the waker of who awaits it.
///
/// # Safety
///
/// Home thread; the task is live, not closed and not being polled. The pointer may dangle afterwards unless the caller owns
/// a reference.
unsafe fn cancel<M: Metadata>(pointer: NonNull<Header<M>>) -> Option<Waker> {
    // SAFETY: live by the caller's promise.
    let header = unsafe { pointer.as_ref() };
    // A drop that reaches back to this task must not begin all over.
    header.polling.set(true);
    // SAFETY: on the home thread, and not polling until just now.
    unsafe { clear(pointer) };
    header.polling.set(false);
    let awaiter = header.awaiter.take();
    // SAFETY: as the caller promised; the future is gone.
    unsafe { close(pointer) };
    awaiter
}

/// Drops the future or the output. A panic that nobody has seen, of the task or of this drop, is reported.
///
/// # Safety
///
/// Home thread; the task is live and its body not in use.
unsafe fn clear<M: Metadata>(pointer: NonNull<Header<M>>) {
    // SAFETY: live by the caller's promise.
    let header = unsafe { pointer.as_ref() };
    // SAFETY: the caller's promise.
    if let Some(payload) = unsafe { (header.vtable.clear)(pointer) } {
        header.metadata.unseen(payload);
    }
}

/// A task that was woken and waits to be polled. May be sent to any thread; does its work at home only.
///
/// Dropping it at home drops the future and closes the task.
pub(crate) struct Runnable<M: Metadata>(NonNull<Header<M>>);

// SAFETY: away from home only the atomic word and the metadata, which is `Send` and `Sync`, are touched.
unsafe impl<M: Metadata> Send for Runnable<M> {}

/// What became of a task that was run.
pub(crate) enum Outcome {
    Pending,
    /// The task is closed. Whoever awaits it is to be woken, once the task is off the books: a waker may be anybody's code.
    Closed(Option<Waker>),
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

    /// Polls the future once, or drops it if the task was aborted.
    ///
    /// Away from home, and for a task that is closed, it does nothing and says `Pending`.
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
            unsafe { release(pointer) };
            return Outcome::Pending;
        }
        assert!(!header.polling.get(), "a task is run from inside itself");
        if header.aborted.get() {
            // SAFETY: at home, live, not closed, not polling.
            return Outcome::Closed(unsafe { cancel(pointer) });
        }
        // SAFETY: at home, live and not closed.
        if !unsafe { (header.vtable.poll)(pointer) } {
            return Outcome::Pending;
        }
        if !header.joined.get() {
            // SAFETY: at home and not polling.
            unsafe { clear(pointer) };
        }
        let awaiter = header.awaiter.take();
        // SAFETY: at home, live, not closed until now; the poll has replaced the future.
        unsafe { close(pointer) };
        Outcome::Closed(awaiter)
    }
}

impl<M: Metadata> Drop for Runnable<M> {
    fn drop(&mut self) {
        let pointer = self.0;
        // SAFETY: as in `metadata`.
        let header = unsafe { pointer.as_ref() };
        if header.state.load(Ordering::Acquire) & CLOSED != 0 {
            // SAFETY: closed while scheduled: the reference for being alive is this runnable's.
            unsafe { release(pointer) };
        } else if header.is_home() && !header.polling.get() {
            header.state.fetch_and(!SCHEDULED, Ordering::AcqRel);
            // SAFETY: at home, live, not closed, not polling.
            if let Some(awaiter) = unsafe { cancel(pointer) } {
                awaiter.wake();
            }
        }
        // Else it leaks: the future may not be dropped here.
    }
}

/// A hold on a task, for its home thread.
pub(crate) struct TaskRef<M: Metadata> {
    pointer: NonNull<Header<M>>,
    home_only: PhantomData<*const ()>,
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

    /// Drops the future at once, unless it is being polled. Whoever awaits the task is to be woken.
    pub(crate) fn cancel(&self) -> Option<Waker> {
        if self.header().is_closed() || self.header().polling.get() {
            return None;
        }
        // SAFETY: at home, as a `TaskRef` does not leave it; live by this reference; not closed, not polling.
        unsafe { cancel(self.pointer) }
    }
}

impl<M: Metadata> Clone for TaskRef<M> {
    fn clone(&self) -> Self {
        let state = &self.header().state;
        add_reference(state);
        Self {
            pointer: self.pointer,
            home_only: PhantomData,
        }
    }
}

impl<M: Metadata> Drop for TaskRef<M> {
    fn drop(&mut self) {
        // SAFETY: this reference is not used afterwards.
        unsafe { release(self.pointer) };
    }
}

/// Where the output of a task is awaited, on its home thread.
pub(crate) struct Output<T, M: Metadata> {
    pointer: NonNull<Header<M>>,
    /// Holds a `T`, and stays home.
    output: PhantomData<(T, *const ())>,
}

impl<T, M: Metadata> Output<T, M> {
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
            header
                .awaiter
                .set(Some(awaiter.unwrap_or_else(|| cx.waker().clone())));
            return Poll::Pending;
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
            home_only: PhantomData,
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
        drop(header.awaiter.take());
        if header.is_closed() {
            // SAFETY: at home, live by this reference, and a closed task is not polled.
            unsafe { clear(self.pointer) };
        }
        // SAFETY: this reference is not used afterwards.
        unsafe { release(self.pointer) };
    }
}

fn add_reference(state: &AtomicUsize) {
    let before = state.fetch_add(REFERENCE, Ordering::Relaxed);
    if before > MOST_REFERENCES {
        std::process::abort();
    }
}

/// The functions of a task's waker. The pointer is that of a live task, by the reference of the waker.
fn waker_vtable<M: Metadata>() -> &'static RawWakerVTable {
    const {
        &RawWakerVTable::new(
            clone_waker::<M>,
            wake::<M>,
            wake_by_ref::<M>,
            drop_waker::<M>,
        )
    }
}

fn header_of<M: Metadata>(pointer: *const ()) -> NonNull<Header<M>> {
    // The pointer of a waker is that of a task, never null.
    NonNull::new(pointer.cast_mut().cast()).expect("the waker of a task")
}

/// # Safety
///
/// As [`waker_vtable`].
unsafe fn clone_waker<M: Metadata>(pointer: *const ()) -> RawWaker {
    // SAFETY: live by the waker that is cloned.
    add_reference(unsafe { &header_of::<M>(pointer).as_ref().state });
    RawWaker::new(pointer, waker_vtable::<M>())
}

/// # Safety
///
/// As [`waker_vtable`].
unsafe fn wake_by_ref<M: Metadata>(pointer: *const ()) {
    let header = header_of::<M>(pointer);
    // SAFETY: live by the waker.
    let state = unsafe { &header.as_ref().state };
    // `Release`: the poll sees what was done before the wake.
    if state.fetch_or(SCHEDULED, Ordering::AcqRel) & (SCHEDULED | CLOSED) == 0 {
        M::schedule(Runnable(header));
    }
}

/// # Safety
///
/// As [`waker_vtable`]; the waker's reference is given up.
unsafe fn wake<M: Metadata>(pointer: *const ()) {
    // SAFETY: as the caller promised.
    unsafe {
        wake_by_ref::<M>(pointer);
        drop_waker::<M>(pointer);
    }
}

/// # Safety
///
/// As [`waker_vtable`]; the waker's reference is given up.
unsafe fn drop_waker<M: Metadata>(pointer: *const ()) {
    // SAFETY: as the caller promised.
    unsafe { release(header_of::<M>(pointer)) };
}
