//! Giving way: for a turn of the loop, or within the microtask lane.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::event_loop::current;
use crate::event_loop::phases::queue::{Entry, QueueKey};
use crate::executor::budget;
use crate::executor::shared::Shared;
use crate::phase_order::Phase;
use crate::site::Site;

/// Lets a turn of the loop pass, so that other tasks, timers and I/O run.
///
/// The task goes on in the next poll phase, after its I/O. The poll phase does not wait for events
/// meanwhile, and the loop stays alive. Tasks that yield go on in the order in which they yielded,
/// and the lanes are drained after each.
///
/// This is what a task calls that has much to compute. [`yield_microtask`] gives way to the other
/// microtasks only, and [`yield_now_immediate`](crate::task::yield_now_immediate) goes on in the
/// check phase, as Node's `setImmediate` does.
///
/// Where no loop runs, it wakes its waker at once. A blocking executor inside of a running loop
/// never gets its turn, as in tokio.
///
/// # Cancel safety
///
/// Dropping the future in its loop removes it from the queue of the phase.
///
/// # Examples
///
/// A task that computes, beside a timer:
///
/// ```
/// use std::{cell::Cell, rc::Rc, time::Duration};
/// use phaseloop::{spawn, task::yield_now, time::sleep};
///
/// #[phaseloop::main]
/// async fn main() {
///     let slept = Rc::new(Cell::new(false));
///     let mark = slept.clone();
///     spawn(async move {
///         sleep(Duration::from_millis(1)).await;
///         mark.set(true);
///     }).detach();
///     while !slept.get() {
///         // A part of the work.
///         yield_now().await;
///     }
/// }
/// ```
#[track_caller]
pub fn yield_now() -> YieldNow {
    YieldNow {
        site: Location::caller(),
        progress: Progress::New,
    }
}

/// Takes one unit of the budget of this poll, as an I/O operation does, and calls [`yield_now`] if
/// the budget is used up.
///
/// A poll of a task has a budget of 128 operations. A loop that computes, or that reads from
/// something which is always ready and is no source of the loop, calls this in each round: it gives
/// way once in 128 rounds.
///
/// # Cancel safety
///
/// Dropping the future loses nothing.
///
/// # Examples
///
/// ```
/// use phaseloop::{set_immediate, task::consume_budget};
/// use std::{cell::Cell, rc::Rc};
///
/// #[phaseloop::main]
/// async fn main() {
///     let ran = Rc::new(Cell::new(false));
///     let mark = ran.clone();
///     set_immediate(move || mark.set(true));
///     for _ in 0..1_000 {
///         consume_budget().await;
///     }
///     assert!(ran.get(), "turns of the loop have passed meanwhile");
/// }
/// ```
#[track_caller]
pub fn consume_budget() -> impl Future<Output = ()> {
    let turn = yield_now();
    async move {
        if !budget::take() {
            turn.await;
        }
    }
}

/// The future of [`yield_now`].
///
/// # Examples
///
/// ```
/// use phaseloop::task::{yield_microtask, yield_now};
///
/// #[phaseloop::main]
/// async fn main() {
///     yield_microtask().await; // behind the microtasks that are queued
///     yield_now().await; // after a turn: timers and I/O get their time
/// }
/// ```
#[must_use = "futures do nothing unless awaited"]
pub struct YieldNow {
    /// The line that created the future.
    site: Site,
    progress: Progress,
}

enum Progress {
    New,
    /// Its waker is in the queue of the poll phase of this loop.
    Queued(Arc<Shared>, QueueKey),
    /// No loop polls it. Its waker was woken.
    Woken,
}

impl Future for YieldNow {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match &self.progress {
            Progress::Woken => return Poll::Ready(()),
            Progress::Queued(shared, key) => {
                let is_queued = current::with_loop_of(shared, |core| {
                    core.map(|core| core.phases.set_entry_waker(Phase::Poll, *key, cx.waker()))
                });
                match is_queued {
                    Some(true) => return Poll::Pending,
                    Some(false) => return Poll::Ready(()),
                    // It was moved to another loop.
                    None => {}
                }
            }
            Progress::New => {}
        }
        self.progress = self.begin(cx);
        Poll::Pending
    }
}

impl YieldNow {
    fn begin(&self, cx: &Context<'_>) -> Progress {
        let waker = cx.waker().clone();
        current::with(|core| match core {
            // A loop that is entered, and does not run, makes no turn for it.
            Some(core) if current::is_running(core) => {
                let key = core.enqueue(Phase::Poll, Entry::Wake(waker), Some(self.site));
                Progress::Queued(core.executor.shared.clone(), key)
            }
            _ => {
                waker.wake();
                Progress::Woken
            }
        })
    }
}

impl Drop for YieldNow {
    fn drop(&mut self) {
        if let Progress::Queued(shared, key) = &self.progress {
            current::with_loop_of(shared, |core| {
                core.map(|core| core.dequeue(Phase::Poll, *key))
            });
        }
    }
}

impl std::fmt::Debug for YieldNow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("YieldNow").finish_non_exhaustive()
    }
}

/// Moves the task to the back of the microtask lane: every queued microtask runs first.
///
/// It is JavaScript's `await null`. Timers and I/O do not run first, since the lane is drained to
/// its end before the loop goes on: a task that does nothing but this starves them. Use
/// [`yield_now`] to let them in.
///
/// # Cancel safety
///
/// Dropping the future has no effect.
///
/// # Examples
///
/// ```
/// use std::{cell::RefCell, rc::Rc};
/// use phaseloop::{spawn, task::yield_microtask};
///
/// fn main() {
///     let log = Rc::new(RefCell::new(Vec::new()));
///     let other = log.clone();
///     phaseloop::block_on(async {
///         spawn(async move { other.borrow_mut().push("other") }).detach();
///         log.borrow_mut().push("before");
///         yield_microtask().await;
///         log.borrow_mut().push("after");
///     });
///     assert_eq!(*log.borrow(), ["before", "other", "after"]);
/// }
/// ```
pub fn yield_microtask() -> YieldMicrotask {
    YieldMicrotask { yielded: false }
}

/// The future of [`yield_microtask`].
///
/// # Examples
///
/// ```
/// use phaseloop::task::{yield_microtask, yield_now};
///
/// #[phaseloop::main]
/// async fn main() {
///     yield_microtask().await; // behind the microtasks that are queued
///     yield_now().await; // after a turn: timers and I/O get their time
/// }
/// ```
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct YieldMicrotask {
    yielded: bool,
}

impl Future for YieldMicrotask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.yielded, true) {
            return Poll::Ready(());
        }
        current::hop(cx.waker());
        Poll::Pending
    }
}
