//! Futures that wait for a phase.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::event_loop::phases::queue::{Entry, QueueKey};
use crate::phase_order::Phase;
use crate::runtime::loop_handle::LoopHandle;
use crate::site::Site;

/// Waits for the next check phase. A turn of the loop passes meanwhile, so that timers and I/O can
/// run.
///
/// It is [`check()`] under another name, and Node's `await setImmediate()`.
/// [`yield_now`](crate::task::yield_now) goes on in the poll phase, and
/// [`yield_microtask`](crate::task::yield_microtask) within the drain.
///
/// # Cancel safety
///
/// Dropping the future removes it from the queue of the phase.
///
/// # Panics
///
/// When it is first polled and no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use std::{cell::RefCell, rc::Rc};
/// use phaseloop::{spawn, task::{yield_microtask, yield_now_immediate}};
///
/// fn main() -> Result<(), phaseloop::Error> {
///     let log = Rc::new(RefCell::new(Vec::new()));
///     let other = log.clone();
///     phaseloop::run(async {
///         spawn(async move {
///             for _ in 0..3 {
///                 yield_microtask().await;
///                 other.borrow_mut().push("microtask");
///             }
///         }).detach();
///         yield_now_immediate().await;
///         log.borrow_mut().push("check");
///     })?;
///     assert_eq!(*log.borrow(), ["microtask", "microtask", "microtask", "check"]);
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn yield_now_immediate() -> PhaseFuture {
    check()
}

/// Waits for the next check phase: that of this turn, or of the next turn if it has begun already.
///
/// # Cancel safety
///
/// Dropping the future removes it from the queue of the phase.
///
/// # Panics
///
/// When it is first polled and no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::{LoopHandle, phase, set_immediate};
/// use std::{cell::Cell, rc::Rc};
///
/// #[phaseloop::main]
/// async fn main() {
///     let called = Rc::new(Cell::new(false));
///     let mark = called.clone();
///     set_immediate(move || mark.set(true));
///     phase::check().await;
///     assert!(called.get(), "it was queued for that phase before");
///     assert_eq!(LoopHandle::current().turns(), 1);
/// }
/// ```
#[track_caller]
pub fn check() -> PhaseFuture {
    PhaseFuture::new(Phase::Check)
}

/// Waits for the next idle phase.
///
/// # Cancel safety
///
/// Dropping the future removes it from the queue of the phase.
///
/// # Panics
///
/// When it is first polled and no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::phase;
///
/// #[phaseloop::main]
/// async fn main() {
///     phase::pending().await;
///     phase::idle().await;
///     phase::prepare().await;
///     phase::poll().await;
///     phase::closing().await;
///     phase::timers().await;
///     println!("a turn has passed, phase by phase");
/// }
/// ```
#[track_caller]
pub fn idle() -> PhaseFuture {
    PhaseFuture::new(Phase::Idle)
}

/// Waits for the next prepare phase, right before the loop waits for I/O.
///
/// # Cancel safety
///
/// Dropping the future removes it from the queue of the phase.
///
/// # Panics
///
/// When it is first polled and no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::phase;
///
/// #[phaseloop::main]
/// async fn main() {
///     phase::pending().await;
///     phase::idle().await;
///     phase::prepare().await;
///     phase::poll().await;
///     phase::closing().await;
///     phase::timers().await;
///     println!("a turn has passed, phase by phase");
/// }
/// ```
#[track_caller]
pub fn prepare() -> PhaseFuture {
    PhaseFuture::new(Phase::Prepare)
}

/// Waits for the next closing phase, after the handles that were closed in this turn.
///
/// # Cancel safety
///
/// Dropping the future removes it from the queue of the phase.
///
/// # Panics
///
/// When it is first polled and no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::phase;
///
/// #[phaseloop::main]
/// async fn main() {
///     phase::pending().await;
///     phase::idle().await;
///     phase::prepare().await;
///     phase::poll().await;
///     phase::closing().await;
///     phase::timers().await;
///     println!("a turn has passed, phase by phase");
/// }
/// ```
#[track_caller]
pub fn closing() -> PhaseFuture {
    PhaseFuture::new(Phase::Closing)
}

/// Waits for the next pass over the pending queue: at the start of a turn, or right after its poll
/// phase.
///
/// # Cancel safety
///
/// Dropping the future removes it from the queue of the phase.
///
/// # Panics
///
/// When it is first polled and no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::phase;
///
/// #[phaseloop::main]
/// async fn main() {
///     phase::pending().await;
///     phase::idle().await;
///     phase::prepare().await;
///     phase::poll().await;
///     phase::closing().await;
///     phase::timers().await;
///     println!("a turn has passed, phase by phase");
/// }
/// ```
#[track_caller]
pub fn pending() -> PhaseFuture {
    PhaseFuture::new(Phase::Pending)
}

/// Waits for the next poll phase, after its I/O.
///
/// # Cancel safety
///
/// Dropping the future removes it from the queue of the phase.
///
/// # Panics
///
/// When it is first polled and no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::phase;
///
/// #[phaseloop::main]
/// async fn main() {
///     phase::pending().await;
///     phase::idle().await;
///     phase::prepare().await;
///     phase::poll().await;
///     phase::closing().await;
///     phase::timers().await;
///     println!("a turn has passed, phase by phase");
/// }
/// ```
#[track_caller]
pub fn poll() -> PhaseFuture {
    PhaseFuture::new(Phase::Poll)
}

/// Waits for the next timers phase, after the timers that are due.
///
/// # Cancel safety
///
/// Dropping the future removes it from the queue of the phase.
///
/// # Panics
///
/// When it is first polled and no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::phase;
///
/// #[phaseloop::main]
/// async fn main() {
///     phase::pending().await;
///     phase::idle().await;
///     phase::prepare().await;
///     phase::poll().await;
///     phase::closing().await;
///     phase::timers().await;
///     println!("a turn has passed, phase by phase");
/// }
/// ```
#[track_caller]
pub fn timers() -> PhaseFuture {
    PhaseFuture::new(Phase::Timers)
}

/// Waits for a phase; returned by the functions of [`phase`](crate::phase).
///
/// Its first poll registers it. From then on it keeps the loop alive and awake until its phase
/// runs. Tasks that wait for one phase wake in the order of registration, and the lanes are drained
/// after each. A task that registers while its phase runs waits for the next turn.
///
/// # Cancel safety
///
/// Dropping the future removes it from the queue of the phase.
///
/// # Panics
///
/// When it is first polled and no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::phase;
///
/// #[phaseloop::main]
/// async fn main() {
///     // The phases of a turn, in their order.
///     phase::prepare().await;
///     phase::poll().await;
///     phase::check().await;
///     phase::closing().await;
///     phase::timers().await;
/// }
/// ```
#[must_use = "futures do nothing unless awaited"]
pub struct PhaseFuture {
    phase: Phase,
    /// The line that created the future.
    site: Site,
    queued: Option<(LoopHandle, QueueKey)>,
}

impl std::fmt::Debug for PhaseFuture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PhaseFuture")
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}

impl PhaseFuture {
    #[track_caller]
    fn new(phase: Phase) -> Self {
        Self {
            phase,
            site: Location::caller(),
            queued: None,
        }
    }

    fn current_loop(&self) -> LoopHandle {
        LoopHandle::current_for(format_args!("phase::{}", self.phase), Some(self.site))
    }
}

impl Future for PhaseFuture {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match &self.queued {
            None => {
                let handle = self.current_loop();
                let entry = Entry::Wake(cx.waker().clone());
                let key = handle.core().enqueue(self.phase, entry, Some(self.site));
                self.queued = Some((handle, key));
                Poll::Pending
            }
            Some((handle, key)) => {
                if handle
                    .core()
                    .phases
                    .set_entry_waker(self.phase, *key, cx.waker())
                {
                    return Poll::Pending;
                }
                Poll::Ready(())
            }
        }
    }
}

impl Drop for PhaseFuture {
    fn drop(&mut self) {
        if let Some((handle, key)) = self.queued.take() {
            handle.core().dequeue(self.phase, key);
        }
    }
}
