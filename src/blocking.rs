//! Blocking work from async code: run it on the pool, await it on the loop.
//!
//! ```text
//!   spawn_blocking ──> queued ──> taken by a thread ──> done ──> inbox ──> poll phase: its task is woken
//!                        └── abort, drop: the closure is dropped unrun
//! ```

use std::fmt;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

use async_task::Task;

use crate::error::Error;
use crate::event_loop::handle::LoopHandle;
use crate::event_loop::remote::Remote;
use crate::executor::join::JoinHandle;
use crate::kinds::Kind;
use crate::pool::Class;

/// Runs a closure that blocks or computes for long on the thread pool.
///
/// The job is queued at once. Its end is delivered in the poll phase: jobs that have ended are delivered in that order, each
/// followed by a drain of the lanes. Until then it keeps the loop alive.
///
/// Dropping the handle lets the job go on; [`abort`](JoinHandle::abort) takes it out of the queue, if no thread has taken
/// it yet: the closure is dropped unrun, by the thread that comes to it. One that runs already goes on, and its result is
/// dropped. A panic in these drops is reported by the panic hook and goes nowhere else.
/// The same happens to the jobs of a loop that is dropped: what waits is cancelled, what runs is left alone.
///
/// # Errors
///
/// Awaiting the handle gives the closure's panic as an error. If not a single thread could be started for the pool, the
/// error says so.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// phaseloop::block_on(async {
///     let sum = phaseloop::spawn_blocking(|| (1..=1_000_u64).sum::<u64>());
///     assert_eq!(sum.await.unwrap(), 500_500);
/// });
/// ```
#[track_caller]
pub fn spawn_blocking<T, F>(job: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    spawn_blocking_as(Class::Cpu, job)
}

/// The same for a job of a given class, whose limit applies; see [`pool`](crate::pool).
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn spawn_blocking_as<T, F>(class: Class, job: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let handle = LoopHandle::current();
    let work = Work::submit(&handle, class, job);
    let task = async move {
        match work {
            // A panic goes on here, where the join handle expects it.
            Ok(work) => work.await,
            // No second message from the panic hook.
            Err(error) => resume_unwind(Box::new(format!(
                "no thread could be started for the blocking pool: {error}"
            ))),
        }
    };
    handle.core().spawn(task, Location::caller(), None)
}

/// A job on the pool, awaited without a task of its own. A panic of the job goes on in the poll.
///
/// # Cancel safety
///
/// Dropping it cancels the job if no thread has taken it.
pub(crate) struct Work<T> {
    handle: LoopHandle,
    delivery: Arc<Delivery<T>>,
    /// Dropped, it cancels the job.
    _job: Task<()>,
}

/// The way of an output from a thread of the pool to its loop: through the inbox, also when the job ends before anybody
/// awaits it, so that ends arrive in the poll phase and in their order (R277).
struct Delivery<T> {
    remote: Remote,
    state: Mutex<State<T>>,
}

struct State<T> {
    output: Option<thread::Result<T>>,
    /// The loop has seen the end.
    arrived: bool,
    /// Nobody wants the output.
    abandoned: bool,
    waiter: Option<Waker>,
}

impl<T: Send + 'static> Work<T> {
    /// # Errors
    ///
    /// When the loop is gone; when the pool has no thread and none can be started.
    pub(crate) fn submit(
        handle: &LoopHandle,
        class: Class,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Self> {
        if handle.is_closed() {
            return Err(io::Error::other(Error::LOOP_CLOSED));
        }
        let delivery = Arc::new(Delivery {
            remote: handle.remote(),
            state: Mutex::new(State {
                output: None,
                arrived: false,
                abandoned: false,
                waiter: None,
            }),
        });
        let (sender, job) = (delivery.clone(), Unrun(Some(job)));
        let job = handle.core().pool().submit(class, move || {
            sender.send(catch_unwind(AssertUnwindSafe(|| job.run())));
        })?;
        handle.core().liveness.add(Kind::Work);
        Ok(Self {
            handle: handle.clone(),
            delivery,
            _job: job,
        })
    }
}

impl<T: Send + 'static> Delivery<T> {
    /// On the pool's thread: the job has ended.
    fn send(self: Arc<Self>, output: thread::Result<T>) {
        let unwanted = {
            let mut state = self.lock();
            if state.abandoned {
                Some(output)
            } else {
                state.output = Some(output);
                None
            }
        };
        if unwanted.is_some() {
            return drop_quietly(unwanted);
        }
        let remote = self.remote.clone();
        // A loop that is gone has nobody to deliver to.
        let _ = remote.call(move || {
            let waiter = {
                let mut state = self.lock();
                state.arrived = true;
                state.waiter.take()
            };
            if let Some(waiter) = waiter {
                waiter.wake();
            }
        });
    }
}

impl<T> Delivery<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Future for Work<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut state = self.delivery.lock();
        if !state.arrived {
            let before = state.waiter.replace(cx.waker().clone());
            drop(state);
            drop(before);
            return Poll::Pending;
        }
        let output = state.output.take();
        drop(state);
        match output.expect("not polled after its end") {
            Ok(output) => Poll::Ready(output),
            Err(panic) => resume_unwind(panic),
        }
    }
}

impl<T> Drop for Work<T> {
    fn drop(&mut self) {
        if !self.handle.is_closed() {
            self.handle.core().liveness.remove(Kind::Work);
        }
        let (output, waiter) = {
            let mut state = self.delivery.lock();
            state.abandoned = true;
            (state.output.take(), state.waiter.take())
        };
        drop_quietly(output);
        drop(waiter);
    }
}

impl<T> fmt::Debug for Work<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work")
            .field("arrived", &self.delivery.lock().arrived)
            .finish_non_exhaustive()
    }
}

/// A closure whose drop does not panic: a cancelled job is dropped where a panic would end the process.
struct Unrun<F>(Option<F>);

impl<F> Unrun<F> {
    fn run<T>(mut self) -> T
    where
        F: FnOnce() -> T,
    {
        let job = self.0.take().expect("run once");
        job()
    }
}

impl<F> Drop for Unrun<F> {
    fn drop(&mut self) {
        drop_quietly(self.0.take());
    }
}

/// Drops what nobody wants. A panic of the drop has been reported by the panic hook, and goes nowhere else.
fn drop_quietly<T>(unwanted: T) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(unwanted)));
}
