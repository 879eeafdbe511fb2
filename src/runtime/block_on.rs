//! The main future: `block_on` and `run`.

use std::cell::Cell;
use std::future::Future;
use std::panic::Location;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::error::Error;
use crate::event_loop::core::Core;
use crate::event_loop::{EventLoop, RunMode, current};
use crate::keeper::Keeper;
use crate::raw::stack_poll;
use crate::report;
use crate::site::Site;

impl EventLoop {
    /// Runs the loop until `future` completes, and returns its output.
    ///
    /// The future is polled in the microtask lane like a task, but it may borrow from the caller.
    /// When it completes, the rest of the current turn runs without waiting. Other tasks stay on
    /// the loop and continue with the next run.
    ///
    /// The loop waits as long as the future is pending, even if nothing is left on the loop, since
    /// another thread may hold the waker. [`run_until_done`](Self::run_until_done) returns an error
    /// in that case. [`stop`](crate::LoopHandle::stop) does not end `block_on`.
    ///
    /// It takes a shared reference, as harnesses do that run one future after another.
    ///
    /// # Panics
    ///
    /// If a loop already runs on this thread, or if waiting for events fails. A panic of the future
    /// or of a callback propagates.
    ///
    /// # Examples
    ///
    /// An executor for benchmarks of criterion:
    ///
    /// ```
    /// use phaseloop::EventLoop;
    ///
    /// // In a benchmark: `use criterion::async_executor::AsyncExecutor;`
    /// trait AsyncExecutor {
    ///     fn block_on<T>(&self, future: impl Future<Output = T>) -> T;
    /// }
    ///
    /// struct OnLoop(EventLoop);
    ///
    /// impl AsyncExecutor for OnLoop {
    ///     fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
    ///         self.0.block_on(future)
    ///     }
    /// }
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let executor = OnLoop(EventLoop::new()?);
    ///     assert_eq!(executor.block_on(async { 20 + 1 }) * 2, 42);
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        current::refuse_inside_a_run();
        let core = &self.core;
        let (output, ()) = with_main_future(core, future, Location::caller(), |is_done| {
            core.executor.queue_main_future();
            let _alive = MainCounted::new(core);
            while !is_done() {
                if let Err(error) = core.run(RunMode::Default) {
                    panic!("waiting for events failed: {error}");
                }
            }
        });
        output.expect("the loop ends only when the future has completed")
    }

    /// Runs the loop until nothing keeps it alive, as a Node program does, and returns the output
    /// of `main`.
    ///
    /// Unlike [`block_on`](Self::block_on) it waits for timers, I/O and tasks that `main` has left
    /// behind, and it ends when the loop is not alive.
    ///
    /// # Errors
    ///
    /// If nothing was left that could wake `main` ([`is_deadlock`](Error::is_deadlock)), or the
    /// loop was stopped before `main` completed ([`is_stopped`](Error::is_stopped)). The text names
    /// the tasks that were still pending.
    ///
    /// # Panics
    ///
    /// The conditions of [`block_on`](Self::block_on) apply.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{EventLoop, spawn, time::sleep};
    ///
    /// fn main() -> Result<(), Box<dyn std::error::Error>> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let output = event_loop.run_until_done(async {
    ///         spawn(sleep(Duration::from_millis(1))).detach(); // the loop waits for it
    ///         42
    ///     })?;
    ///     assert_eq!(output, 42);
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn run_until_done<F: Future>(&mut self, main: F) -> Result<F::Output, Error> {
        current::refuse_inside_a_run();
        let (core, site) = (&self.core, Location::caller());
        let (output, pending) = with_main_future(core, main, site, |is_done| {
            core.executor.queue_main_future();
            if let Err(error) = core.run(RunMode::Default) {
                panic!("waiting for events failed: {error}");
            }
            // Here, since the main future is dropped next, and its waits with it.
            (!is_done()).then(|| report::pending(core, site))
        });
        output.ok_or_else(|| {
            let pending = pending.unwrap_or_default();
            if core.was_stopped.get() {
                Error::stopped(pending)
            } else {
                Error::deadlock(pending)
            }
        })
    }
}

/// Makes `future` the main future while `run` runs the loop. `run` begins it.
pub(crate) fn with_main_future<F: Future, R>(
    core: &Rc<Core>,
    future: F,
    site: Site,
    run: impl FnOnce(&dyn Fn() -> bool) -> R,
) -> (Option<F::Output>, R) {
    let mut future = pin!(future);
    let mut output = None;
    let is_done = Cell::new(false);
    let poll = |cx: &mut Context<'_>| {
        // Set before the poll, which may panic.
        is_done.set(true);
        match stack_poll::poll_with(cx, |cx| future.as_mut().poll(cx)) {
            Poll::Pending => {
                is_done.set(false);
                Poll::Pending
            }
            Poll::Ready(value) => {
                output = Some(value);
                core.executor.end_main_future();
                if core.ledger.count(Keeper::MainFuture) > 0 {
                    core.stop.set(true);
                }
                Poll::Ready(())
            }
        }
    };
    let run = || run(&|| is_done.get());
    let result = core.executor.with_main_future(site, poll, run);
    (output, result)
}

/// Counts the main future of `block_on` as a keeper of the loop.
pub(crate) struct MainCounted<'a>(&'a Core);

impl<'a> MainCounted<'a> {
    pub(crate) fn new(core: &'a Core) -> Self {
        core.ledger.add(Keeper::MainFuture);
        Self(core)
    }
}

impl Drop for MainCounted<'_> {
    fn drop(&mut self) {
        self.0.ledger.remove(Keeper::MainFuture);
    }
}

/// Runs `future` to completion on a new loop, and returns its output.
///
/// Tasks that are still pending are dropped with the loop; [`run`] waits for them. See
/// [`EventLoop::block_on`].
///
/// # Panics
///
/// If the loop cannot be created ([`EventLoop::new`] returns that OS error instead), or if a loop
/// already runs on this thread. A panic of the future propagates.
///
/// # Examples
///
/// ```
/// use std::rc::Rc;
///
/// fn main() {
///     let answer = phaseloop::block_on(async {
///         let shared = Rc::new(41);
///         let copy = shared.clone();
///         phaseloop::spawn(async move { *copy + 1 }).await.unwrap()
///     });
///     assert_eq!(answer, 42);
/// }
/// ```
#[track_caller]
pub fn block_on<F: Future>(future: F) -> F::Output {
    new_loop().block_on(future)
}

/// Runs `main` and everything it starts on a new loop, until nothing keeps the loop alive.
///
/// See [`EventLoop::run_until_done`].
///
/// # Errors
///
/// If nothing could wake `main` any more while it was pending, or the loop was stopped before.
///
/// # Panics
///
/// The conditions of [`block_on`] apply.
///
/// # Examples
///
/// ```
/// use std::{cell::Cell, rc::Rc, time::Duration};
/// use phaseloop::{spawn, time::sleep};
///
/// fn main() -> Result<(), phaseloop::Error> {
///     let late = Rc::new(Cell::new(false));
///     let mark = late.clone();
///     phaseloop::run(async move {
///         // No `JoinHandle` awaits this task; `run` waits for it nevertheless.
///         spawn(async move {
///             sleep(Duration::from_millis(1)).await;
///             mark.set(true);
///         }).detach();
///     })?;
///     assert!(late.get());
///
///     let stuck = phaseloop::run(std::future::pending::<()>());
///     assert!(stuck.unwrap_err().is_deadlock());
///     Ok(())
/// }
/// ```
#[track_caller]
pub fn run<F: Future>(main: F) -> Result<F::Output, Error> {
    new_loop().run_until_done(main)
}

#[track_caller]
fn new_loop() -> EventLoop {
    match EventLoop::new() {
        Ok(event_loop) => event_loop,
        Err(error) => panic!(
            "cannot create an event loop: {error} (`EventLoop::new` returns this error instead of panicking)"
        ),
    }
}
