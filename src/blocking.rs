//! Blocking work from async code: run it on the pool, await it on the loop.
//!
//! ```text
//!   spawn_blocking ──> queued ──> taken by a thread ──> done ──> wake: inbox ──> poll phase
//!                        └── abort, drop: the closure is dropped unrun
//! ```

use std::fmt;
use std::future::Future;
use std::io;
use std::panic::{Location, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use async_task::FallibleTask;

use crate::event_loop::handle::LoopHandle;
use crate::executor::join::JoinHandle;
use crate::kinds::Kind;
use crate::pool::Class;

/// Runs a closure that blocks or computes for long on the thread pool.
///
/// The job is queued at once. Its end is delivered in the poll phase: jobs that have ended are delivered in that order, each
/// followed by a drain of the lanes. Until then it keeps the loop alive.
///
/// Dropping the handle lets the job go on; [`abort`](JoinHandle::abort) takes it out of the queue, if no thread has taken
/// it yet: the closure is dropped unrun. One that runs already goes on, and its result is dropped.
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
            // Only its own drop cancels the work. A panic goes on here, where the join handle expects it.
            Ok(work) => work.await.expect("not cancelled while it is awaited"),
            // No second message from the panic hook.
            Err(error) => resume_unwind(Box::new(format!(
                "no thread could be started for the blocking pool: {error}"
            ))),
        }
    };
    handle.core().spawn(task, Location::caller(), None)
}

/// A job on the pool, awaited without a task of its own. Its output is `None` when the pool dropped the job.
///
/// # Cancel safety
///
/// Dropping it cancels the job if no thread has taken it.
pub(crate) struct Work<T> {
    handle: LoopHandle,
    job: FallibleTask<T>,
}

impl<T: Send + 'static> Work<T> {
    /// # Errors
    ///
    /// When the pool has no thread and none can be started.
    pub(crate) fn submit(
        handle: &LoopHandle,
        class: Class,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Self> {
        let job = handle.core().pool().submit(class, job)?;
        handle.core().liveness.add(Kind::Work);
        Ok(Self {
            handle: handle.clone(),
            job,
        })
    }
}

impl<T> Future for Work<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        Pin::new(&mut self.job).poll(cx)
    }
}

impl<T> Drop for Work<T> {
    fn drop(&mut self) {
        if !self.handle.is_closed() {
            self.handle.core().liveness.remove(Kind::Work);
        }
    }
}

impl<T> fmt::Debug for Work<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work")
            .field("finished", &self.job.is_finished())
            .finish_non_exhaustive()
    }
}
