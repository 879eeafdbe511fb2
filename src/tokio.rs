//! tokio's crates on the loop's own thread. Behind the feature `tokio-rt`; Unix only.
//!
//! `cargo add phaseloop --features tokio-rt`, and for programs that name tokio, as the examples
//! below do, `cargo add tokio --features rt,time`.
//!
//! reqwest, sqlx, redis, tower's timeouts and `axum::serve` need a tokio runtime around them, and
//! panic without one: "there is no reactor running". A loop that is built with [`Builder::tokio`]
//! has one: a `current_thread` runtime that lives inside the wait of the poll phase. Everything of
//! tokio then works, unmodified, in every task and callback of the loop, beside tasks that are not
//! `Send`: `tokio::spawn`, `tokio::net`, `tokio::time`, `tokio::fs`, `LocalSet`.
//!
//! # Examples
//!
//! ```
//! use std::rc::Rc;
//! use std::time::Duration;
//!
//! fn main() {
//!     phaseloop::tokio::block_on(async {
//!         let shared = Rc::new(40); // not `Send`: this is a task of the loop
//!         let two = tokio::spawn(async {
//!             tokio::time::sleep(Duration::from_millis(1)).await;
//!             2
//!         });
//!         phaseloop::time::sleep(Duration::from_millis(1)).await;
//!         assert_eq!(*shared + two.await.unwrap(), 42);
//!     });
//! }
//! ```
//!
//! With the attribute:
//!
//! ```
//! #[phaseloop::main(tokio)]
//! async fn main() {
//!     assert_eq!(tokio::task::spawn_blocking(|| 7).await.unwrap(), 7);
//! }
//! ```
//!
//! # Order
//!
//! The tasks of tokio run in the poll phase: when the phase would wait, the runtime runs instead,
//! until the loop has something to do. To the loop, one such wait is one callback. So what the
//! tasks and the driver of tokio wake enters the microtask lane, and the lanes are drained when the
//! wait ends, before the messages and the I/O of that phase.
//!
//! A turn that does not wait (an immediate is queued, say) visits tokio once in 61 turns, or after
//! a millisecond. [`RunMode::NoWait`](crate::RunMode::NoWait) and
//! [`turn`](crate::EventLoop::turn) with a zero wait visit it each time. A task of tokio that is
//! always ready does not starve the loop: the wait ends after ten milliseconds at the latest.
//!
//! # The tasks of the loop
//!
//! They are polled as tokio polls its own tasks:
//!
//! - Each poll has tokio's budget. A task that reads from a channel or a socket of tokio which is
//!   always ready gives way after 127 operations, so a timeout around it ends it.
//! - A task that wakes itself while it is polled goes on in the next poll phase, once tokio's
//!   driver was polled. So `while !done { tokio::task::yield_now().await }` lets everything else
//!   run, and the timers that are due have fired when `tokio::time::advance` returns. On a loop
//!   without tokio, 61 such wakes stay in the drain.
//! - What would block the loop panics with tokio's reason: `blocking_recv`, `blocking_send`,
//!   `blocking_lock`, `Handle::block_on`. This applies to callbacks, too, and to everything that
//!   runs inside of a run of the loop. Use [`spawn_blocking`](crate::spawn_blocking) or tokio's.
//!
//! # Liveness
//!
//! The loop is alive while tokio has tasks. It is also alive while a task of the loop or the main
//! future is pending, since the loop cannot see whether they wait for something of tokio. So
//! [`run`] does not end with an error when they wait for something that never comes; the
//! [report](crate::LoopHandle::report) names them. A job of `tokio::task::spawn_blocking` that no
//! task awaits does not keep the loop alive.
//!
//! # Panics and the end
//!
//! The panic of a tokio task is returned by its tokio `JoinHandle`. Dropping the loop drops the
//! tasks of the loop, then those of tokio, then waits for jobs of tokio's `spawn_blocking` that
//! have begun, as dropping any tokio runtime does.
//!
//! # Cost
//!
//! A loop without [`Builder::tokio`] pays nothing. With it, tokio's own sockets cost what they cost
//! in tokio. A wait for the loop's own sockets takes a second system call. `tokio::spawn` in a task
//! of the loop is a spawn from outside of the runtime, which takes a system call; in a task of
//! tokio it is not. The program `cost` in `examples/island` of the repository measures all of them.
//!
//! Metrics and observers of the loop see the time of tokio's tasks as part of the wait.
//!
//! # Limits
//!
//! - `tokio::task::block_in_place`. In other `current_thread` runtimes it panics. Here its closure
//!   runs, and the loop stands still until it returns; a `Handle::block_on` in it waits for ever.
//!   Use [`spawn_blocking`](crate::spawn_blocking) or tokio's.
//! - `tokio::task::spawn_local` outside of a `LocalSet`, as in any such runtime. Use
//!   [`spawn`](crate::spawn()), whose tasks need not be `Send`.
//! - `tokio::runtime::Handle::block_on` in a task or callback of the loop: it panics. `.await` the
//!   future.
//! - `tokio::time::pause` stops tokio's clock only. The timers of the loop run in real time.
//! - A [paused](crate::time::pause) clock: tokio's timers run in real time. [`Builder::build`]
//!   returns an error, and [`pause`](crate::time::pause) panics.
//! - Running the loop inside a task of another tokio runtime: tokio refuses to start a runtime from
//!   within a runtime. There, let that runtime [drive the loop](crate::LoopHandle::backend).
//! - [Embedding](crate::LoopHandle::backend) the loop, and running it in a child after `fork`.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::{self, Handle, Runtime, RuntimeMetrics};
use tokio::task::{block_in_place, coop};
use waker_fn::waker_fn;

use crate::error::Error;
use crate::event_loop::EventLoop;
use crate::event_loop::core::Core;
use crate::event_loop::current::runs_in_hook;
use crate::event_loop::wait::WaitHook;
use crate::executor::guarded::PollGuard;
use crate::runtime::builder::Builder;
use crate::runtime::embed::Backend;
use crate::sys::poller::HAS_TIMER;
use crate::ways_to_wait::hook::{end_of_wait, wait_by, with_hook};

/// The longest time that tasks of tokio which never sleep keep the loop from its next turn, in
/// nanoseconds.
///
/// I/O of the loop ends the wait anyway. What these tasks start on the loop meanwhile, such as a
/// timer, is noticed only when they sleep, or after this time.
const GUARD: u64 = 10_000_000;

impl Builder {
    /// Runs a tokio runtime inside the loop's wait, so that tokio's crates work in its tasks; see
    /// [`phaseloop::tokio`](crate::tokio). Behind the feature `tokio-rt`.
    ///
    /// [`build`](Self::build) then also returns the errors of building the runtime, and an error if
    /// the clock is to start paused. It panics inside a task of another tokio runtime.
    ///
    /// # Examples
    ///
    /// After `cargo add tokio --features rt,time`:
    ///
    /// ```
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = phaseloop::Builder::new().tokio().build()?;
    ///     event_loop.block_on(async {
    ///         let answer = tokio::spawn(async { 42 }).await;
    ///         assert_eq!(answer.unwrap(), 42);
    ///     });
    ///     Ok(())
    /// }
    /// ```
    pub fn tokio(self) -> Self {
        self.set_wait(wait_by(|core| Ok(Box::new(Island::new(core)?))))
    }
}

/// Runs `future` to completion on a new loop with a tokio runtime inside, and returns its output.
///
/// It is [`phaseloop::block_on`](crate::block_on()) for programs that use tokio's crates.
///
/// # Panics
///
/// If the loop or the runtime cannot be created, or if a loop or a tokio runtime already runs on
/// this thread. A panic of the future propagates.
///
/// # Examples
///
/// After `cargo add tokio --features rt,time`:
///
/// ```
/// use std::time::Duration;
///
/// fn main() {
///     let late = phaseloop::tokio::block_on(async {
///         tokio::time::timeout(Duration::from_millis(1), std::future::pending::<()>()).await
///     });
///     assert!(late.is_err());
/// }
/// ```
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    new_loop().block_on(future)
}

/// Runs `main` and everything it starts on a new loop with a tokio runtime inside, until nothing
/// keeps the loop alive.
///
/// It is [`phaseloop::run`](crate::run()) for programs that use tokio's crates. The
/// [module](self) says what keeps such a loop alive.
///
/// # Errors
///
/// If the loop was stopped before `main` completed.
///
/// # Panics
///
/// The conditions of [`block_on`] apply.
///
/// # Examples
///
/// After `cargo add tokio --features rt,time`:
///
/// ```
/// use std::{cell::Cell, rc::Rc, time::Duration};
///
/// fn main() -> Result<(), phaseloop::Error> {
///     let late = Rc::new(Cell::new(false));
///     let mark = late.clone();
///     phaseloop::tokio::run(async move {
///         // No `JoinHandle` awaits this task; `run` waits for it nevertheless.
///         phaseloop::spawn(async move {
///             tokio::time::sleep(Duration::from_millis(1)).await;
///             mark.set(true);
///         }).detach();
///     })?;
///     assert!(late.get());
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn run<F: Future>(main: F) -> Result<F::Output, Error> {
    new_loop().run_until_done(main)
}

#[track_caller]
fn new_loop() -> EventLoop {
    match Builder::new().tokio().build() {
        Ok(event_loop) => event_loop,
        Err(error) => panic!("cannot create an event loop with tokio: {error}"),
    }
}

/// The runtime, and the state of the wait inside it.
struct Island {
    /// `None` once the loop was dropped.
    parts: RefCell<Option<Parts>>,
    handle: Handle,
    metrics: RuntimeMetrics,
    budget: Rc<Budget>,
    readiness: Arc<Readiness>,
    /// `readiness` as a waker.
    on_readable: Waker,
    /// Whether tokio holds `on_readable`: it has not called it since.
    is_registered: Cell<bool>,
    /// When the current wait has begun.
    start: Cell<u64>,
    /// The latest end of the current wait, if its caller has set one.
    until: Cell<Option<u64>>,
    /// The end of the current wait, where tokio's timer ends it.
    end: Cell<u64>,
    /// Whether the runtime has slept until the guard fired: nothing is ready in it.
    is_calm: Cell<bool>,
}

/// Notes that the descriptor of the poller has become readable. It stays registered with tokio from
/// one wait to the next, so that a wait in which only tokio has events does not ask for it.
struct Readiness {
    is_readable: AtomicBool,
    /// Wakes the future that waits inside the runtime.
    wait: Mutex<Waker>,
}

impl Readiness {
    fn set_readable(&self) {
        self.is_readable.store(true, Ordering::Release);
        self.end_wait();
    }

    /// Ends the wait that is in progress.
    fn end_wait(&self) {
        let wait = self.wait.lock().unwrap_or_else(PoisonError::into_inner);
        wait.wake_by_ref();
    }

    fn set_wait(&self, waker: &Waker) {
        let mut wait = self.wait.lock().unwrap_or_else(PoisonError::into_inner);
        wait.clone_from(waker);
    }
}

/// The descriptor is deregistered before the runtime ends.
struct Parts {
    descriptor: AsyncFd<Backend>,
    runtime: Runtime,
}

impl Island {
    fn new(core: &Rc<Core>) -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .on_thread_park(|| with_hook(|core, hook| hook.before_sleep(core)))
            .on_thread_unpark(|| with_hook(|core, hook| hook.after_sleep(core)))
            .build()?;
        // Where tokio does not allow this, the runtime could neither run nor be dropped.
        let budget = outside_run(|| runtime.block_on(poll_fn(coop::poll_proceed)));
        let context = runtime.enter();
        #[allow(
            deprecated,
            reason = "its successor is newer than the oldest tokio; the descriptor is owned, which that asks for"
        )]
        let descriptor = AsyncFd::with_interest(Backend::of(core.io.poller()), Interest::READABLE)?;
        drop(context);
        let handle = runtime.handle().clone();
        let readiness = Arc::new(Readiness {
            is_readable: AtomicBool::new(false),
            wait: Mutex::new(Waker::noop().clone()),
        });
        let noted = readiness.clone();
        Ok(Self {
            metrics: handle.metrics(),
            handle,
            budget: Rc::new(Budget(Cell::new(Some(budget)))),
            on_readable: waker_fn(move || noted.set_readable()),
            readiness,
            is_registered: Cell::new(false),
            parts: RefCell::new(Some(Parts {
                descriptor,
                runtime,
            })),
            start: Cell::new(0),
            until: Cell::new(None),
            end: Cell::new(u64::MAX),
            is_calm: Cell::new(false),
        })
    }

    /// Polls the wait: it ends with the first wake. Returns whether the poller may have events.
    fn poll_wait(
        &self,
        descriptor: &AsyncFd<Backend>,
        is_woken: bool,
        cx: &mut Context<'_>,
    ) -> Poll<bool> {
        let is_readable = self.take_readable(descriptor);
        if is_readable || is_woken {
            return Poll::Ready(is_readable);
        }
        self.readiness.set_wait(cx.waker());
        Poll::Pending
    }

    /// Returns whether the descriptor has become readable since the last call, and sees to it that
    /// tokio reports the next time.
    fn take_readable(&self, descriptor: &AsyncFd<Backend>) -> bool {
        if self.is_registered.get() && !self.readiness.is_readable.load(Ordering::Acquire) {
            return false;
        }
        self.readiness.is_readable.store(false, Ordering::Release);
        let polled = descriptor.poll_read_ready(&mut Context::from_waker(&self.on_readable));
        self.is_registered.set(polled.is_pending());
        match polled {
            Poll::Ready(Ok(mut guard)) => {
                // All events are taken from the poller after this, or noted as left.
                guard.clear_ready();
                true
            }
            // The runtime is about to end.
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        }
    }

    /// Sets the guard: the wait ends soon even if the tasks of tokio never sleep.
    fn set_guard(&self, core: &Core, now: u64) {
        self.is_calm.set(false);
        core.wake_by(now.saturating_add(GUARD), now);
    }

    /// Returns when a wait has to end where the poller has no timer; a timer of tokio ends it.
    fn end_without_timer(&self, core: &Core, now: u64) -> u64 {
        let end = end_of_wait(core, self.until.get()).unwrap_or(u64::MAX);
        if self.is_calm.get() {
            end
        } else {
            end.min(now.saturating_add(GUARD))
        }
    }
}

/// The budget of a poll: how many operations of tokio's resources succeed before they have the
/// task give way.
///
/// tokio sets it for its own tasks. What [`poll_proceed`](coop::poll_proceed) returns restores the
/// budget as it was before when it is dropped, which is the way to set it from outside.
struct Budget(Cell<Option<coop::RestoreOnPending>>);

impl Budget {
    /// Calls `poll` with a full budget. The one of the caller is in force again afterwards.
    fn surround(&self, poll: &mut dyn FnMut()) {
        let polled = poll_fn(|_| {
            self.refill();
            poll();
            Poll::Ready(())
        });
        let mut context = Context::from_waker(Waker::noop());
        let polled = pin!(coop::unconstrained(polled)).poll(&mut context);
        debug_assert!(polled.is_ready(), "it does not wait");
    }

    fn refill(&self) {
        drop(self.0.take());
        // A full budget lets it proceed.
        let proceeded = coop::poll_proceed(&mut Context::from_waker(Waker::noop()));
        if let Poll::Ready(full) = proceeded {
            self.0.set(Some(full));
        }
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        if let Some(full) = self.0.take() {
            // The thread has no budget after the loop, as before it.
            full.made_progress();
        }
    }
}

/// Calls `body` as code outside of the run of a loop, which may block the thread.
fn outside_run<R>(body: impl FnOnce() -> R) -> R {
    if runs_in_hook() {
        block_in_place(body)
    } else {
        body()
    }
}

impl WaitHook for Island {
    fn name(&self) -> &'static str {
        "tokio"
    }

    fn enter(&self, body: &mut dyn FnMut()) {
        let _context = self.handle.enter();
        body();
    }

    fn run(&self, body: &mut dyn FnMut()) {
        // tokio's blocking calls refuse to run inside. The budget is that of each poll.
        let run = poll_fn(|_| {
            body();
            Poll::Ready(())
        });
        self.handle.block_on(coop::unconstrained(run));
    }

    fn poll_guard(&self) -> PollGuard {
        let budget = self.budget.clone();
        Box::new(move |poll| budget.surround(poll))
    }

    fn wait(&self, core: &Core, now: u64, until: Option<u64>, was_quiet: bool) -> bool {
        let parts = self.parts.borrow();
        let Some(Parts {
            descriptor,
            runtime,
        }) = &*parts
        else {
            return true;
        };
        self.start.set(now);
        self.until.set(until);
        // After a quiet wait no code has run, and what slept until the guard fired still sleeps.
        self.is_calm.set(self.is_calm.get() && was_quiet);
        if HAS_TIMER && !self.is_calm.get() {
            self.set_guard(core, now);
        }
        let mut is_woken = false;
        let wait = poll_fn(|cx| {
            let polled = self.poll_wait(descriptor, is_woken, cx);
            is_woken = true;
            polled
        });
        if HAS_TIMER {
            return outside_run(|| runtime.block_on(wait));
        }
        let end = self.end_without_timer(core, now);
        self.end.set(end);
        let limit = Duration::from_nanos(end.saturating_sub(now));
        let limited = async { tokio::time::timeout(limit, wait).await };
        // A wait that has timed out knows nothing of the descriptor.
        outside_run(|| runtime.block_on(limited)).unwrap_or(true)
    }

    fn visit(&self) {
        let parts = self.parts.borrow();
        let Some(Parts { runtime, .. }) = &*parts else {
            return;
        };
        let mut is_done = false;
        let round = poll_fn(|cx| {
            if std::mem::replace(&mut is_done, true) {
                return Poll::Ready(());
            }
            // Woken at once, the runtime polls its tasks and its driver, and does not sleep.
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        outside_run(|| runtime.block_on(round));
    }

    fn before_sleep(&self, core: &Core) {
        let Some(end) = end_of_wait(core, self.until.get()) else {
            return;
        };
        if HAS_TIMER && core.host.has_timer_between(self.start.get(), end) {
            // No wait has taken its event since: if it has fired already, the sleep ends at once.
            return;
        }
        let now = core.executor.clock.read();
        if end <= now || (!HAS_TIMER && end < self.end.get()) {
            self.readiness.end_wait();
        } else if HAS_TIMER {
            core.wake_by(end, now);
        }
    }

    fn after_sleep(&self, core: &Core) {
        if !core.executor.lanes.is_empty() {
            self.readiness.end_wait();
        }
        let has_guard_fired = || {
            if HAS_TIMER {
                // The timer is one of the events of the descriptor.
                self.readiness.is_readable.load(Ordering::Acquire)
                    && core.host.has_timer_fired(core.executor.clock.read())
            } else {
                core.executor.clock.read() >= self.end.get()
            }
        };
        if !self.is_calm.get() {
            self.is_calm.set(has_guard_fired());
        } else if HAS_TIMER {
            self.set_guard(core, core.executor.clock.read());
        } else {
            // The next wait has a guard.
            self.readiness.end_wait();
        }
    }

    fn task_count(&self) -> usize {
        self.metrics.num_alive_tasks()
    }

    fn shut_down(&self, is_inherited: bool) {
        let parts = self.parts.take();
        if is_inherited {
            std::mem::forget(parts);
            return;
        }
        let Some(Parts {
            descriptor,
            runtime,
        }) = parts
        else {
            return;
        };
        // Another loop may run on this thread.
        outside_run(|| {
            drop(descriptor);
            drop(runtime);
        });
    }
}
