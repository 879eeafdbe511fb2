//! Blocking work from async code: it runs on the thread pool and is awaited on the loop.
//!
//! ```text
//!   spawn_blocking ──> queued ──> on a thread ──> completed ──> inbox ──> poll phase: task woken
//!                        └── abort, drop: the closure is dropped without a call
//! ```

#[cfg_attr(all(test, phaseloop_loom), path = "blocking/models.rs")]
mod home;
mod job;
mod queued;
#[cfg(feature = "fs")]
pub(crate) mod step_job;

use std::fmt;
use std::future::Future;
use std::io;
use std::panic::{Location, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use self::home::Home;
use self::job::Job;
pub use self::queued::QueuedWork;
use crate::error::Error;
use crate::event_loop::ledger::jobs::{JobKey, Purpose};
use crate::executor::join::{Awaited, JoinHandle};
use crate::pool::Class;
use crate::raw::bound::Bound;
use crate::runtime::loop_handle::LoopHandle;

/// Runs a closure that blocks or computes for a long time on the thread pool.
///
/// The job is queued at once. Its completion is delivered in the poll phase, in the order of
/// completion, and a drain of the lanes follows each. A job keeps the loop alive until then.
///
/// Dropping the handle detaches the job. [`abort`](JoinHandle::abort) cancels a job that no thread
/// has taken yet: the closure is dropped without a call, on the owner thread, in the microtask
/// lane. A job that runs continues, and its result is dropped. A panic of these drops is printed by
/// the panic hook and does not propagate. Dropping the loop cancels its waiting jobs and leaves the
/// running ones.
///
/// # Errors
///
/// Awaiting the handle returns the closure's panic as an error. If the pool has no thread and none
/// can be started, the error says so.
///
/// # Panics
///
/// If no loop runs on this thread.
///
/// # Examples
///
/// ```
/// #[phaseloop::main]
/// async fn main() {
///     let sum = phaseloop::spawn_blocking(|| (1..=1_000_u64).sum::<u64>());
///     assert_eq!(sum.await.unwrap(), 500_500);
/// }
/// ```
#[track_caller]
#[doc(alias = "uv_queue_work")]
#[doc(alias = "block_in_place")]
pub fn spawn_blocking<T, F>(job: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    LoopHandle::current().spawn_blocking_as(Class::Cpu, job)
}

/// Runs a job of a given class, whose limit applies; see [`spawn_blocking`] and
/// [`pool`](crate::pool).
///
/// # Errors
///
/// The errors of [`spawn_blocking`].
///
/// # Panics
///
/// If no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::{pool::Class, spawn_blocking_as};
///
/// #[phaseloop::main]
/// async fn main() {
///     let names = spawn_blocking_as(Class::Fs, || std::fs::read_dir(".").map(Iterator::count));
///     assert!(names.await.unwrap().is_ok());
/// }
/// ```
#[track_caller]
pub fn spawn_blocking_as<T, F>(class: Class, job: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    LoopHandle::current().spawn_blocking_as(class, job)
}

impl LoopHandle {
    /// Runs a closure that blocks or computes for a long time on the thread pool, for this loop;
    /// see [`spawn_blocking`](crate::spawn_blocking).
    ///
    /// If the loop was dropped, the closure is dropped without a call, and the handle reports the
    /// job as cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, RunMode};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     let sum = event_loop.handle().spawn_blocking(|| (1..=1_000_u64).sum::<u64>());
    ///     event_loop.run(RunMode::Default)?;
    ///     assert!(sum.is_finished());
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn spawn_blocking<T, F>(&self, job: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.spawn_blocking_as(Class::Cpu, job)
    }

    /// Runs a job of a given class, whose limit applies; see
    /// [`spawn_blocking`](Self::spawn_blocking) and [`pool`](crate::pool).
    #[track_caller]
    pub fn spawn_blocking_as<T, F>(&self, class: Class, job: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        if self.is_closed() {
            return JoinHandle::never_started(self.core().executor.tasks.new_job_id());
        }
        let (core, site) = (self.core(), Location::caller());
        let purpose = Purpose {
            class,
            operation: "spawn_blocking",
            site: Some(site),
        };
        let job = core.begin_spawned_job(purpose, |key, id| {
            Job::new(Home::new(self, key, Some((id, site))), job)
        });
        match submit(self, class, job) {
            Ok(job) => JoinHandle::of_job(job),
            // `resume_unwind` does not call the panic hook: the caller receives the error.
            Err(error) => {
                let failed = async move { resume_unwind(Box::new(error.to_string())) };
                core.executor.spawn(failed, site, None)
            }
        }
    }
}

/// A job on the pool that is awaited without a task of its own. A panic of the job resumes in the
/// poll.
///
/// It keeps the loop alive until its completion has arrived, whether or not it is awaited. If it
/// outlives its loop, another loop can await it.
///
/// # Cancel safety
///
/// Dropping the future cancels the job if no thread has taken it.
pub(crate) struct Work<T> {
    handle: LoopHandle,
    key: JobKey,
    job: Bound<Arc<dyn Awaited<T>>>,
}

impl<T: Send + 'static> Work<T> {
    /// # Errors
    ///
    /// If the loop was dropped, or if the pool has no thread and none can be started.
    pub(crate) fn submit(
        handle: &LoopHandle,
        purpose: Purpose,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Self> {
        let job = begin(handle, purpose, job)?;
        Ok(Self {
            handle: handle.clone(),
            key: job.home.key(),
            job: Bound::new(job),
        })
    }
}

/// Submits a job that does not count as a task.
///
/// # Errors
///
/// If the loop was dropped, or if the pool has no thread and none can be started.
fn begin<F, T>(handle: &LoopHandle, purpose: Purpose, job: F) -> io::Result<Arc<Job<F, T>>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    if handle.is_closed() {
        return Err(io::Error::other(Error::LOOP_CLOSED));
    }
    let key = handle.core().begin_job(purpose);
    let job = Job::new(Home::new(handle, key, None), job);
    submit(handle, purpose.class, job)
}

/// Submits a job, which the loop counts already, to the pool.
///
/// # Errors
///
/// If the pool has no thread and none can be started. Then the loop counts the job no longer.
fn submit<F, T>(
    handle: &LoopHandle,
    class: Class,
    job: Arc<Job<F, T>>,
) -> io::Result<Arc<Job<F, T>>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let core = handle.core();
    match core.pool().submit(class, job.clone()) {
        Ok(()) => Ok(job),
        Err(error) => {
            drop(core.end_job(job.home.key()));
            Err(no_thread(&error))
        }
    }
}

/// Returns the error of a pool without a thread. Its kind is not that of the OS error, which is
/// often `WouldBlock`: a caller would take that as a request to wait.
fn no_thread(error: &io::Error) -> io::Error {
    io::Error::other(format!(
        "no thread could be started for the blocking pool: {error}; raise the limit of threads \
         (RLIMIT_NPROC, or that of the control group), or give the pool fewer threads or smaller \
         stacks"
    ))
}

impl<T> Future for Work<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        self.job.poll(cx).map(|output| match output {
            Some(Ok(output)) => output,
            Some(Err(panic)) => resume_unwind(panic),
            None => panic!("a job of the pool was polled after its end"),
        })
    }
}

impl<T> Drop for Work<T> {
    fn drop(&mut self) {
        let is_counted = self.job.cancel();
        if is_counted && !self.handle.is_closed() {
            self.handle.core().end_job(self.key);
        }
    }
}

impl<T> fmt::Debug for Work<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").finish_non_exhaustive()
    }
}
