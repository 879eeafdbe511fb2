//! Blocking work from async code: it runs on the thread pool and is awaited on the loop.
//!
//! ```text
//!   spawn_blocking ──> queued ──> on a thread ──> completed ──> inbox ──> poll phase: task woken
//!                        └── abort, drop: the closure is dropped without a call
//! ```

mod job;
#[cfg(all(test, phaseloop_loom))]
mod models;
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

use self::job::{Awaited, Home, Job};
pub use self::queued::QueuedWork;
use crate::error::Error;
use crate::event_loop::api::loop_handle::LoopHandle;
use crate::event_loop::api::remote::Remote;
use crate::event_loop::ledger::jobs::{JobKey, Purpose};
use crate::executor::join::JoinHandle;
use crate::executor::message::Arrival;
use crate::pool::Class;

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

/// Runs a job of a given class, whose limit applies; see [`spawn_blocking`] and
/// [`pool`](crate::pool).
///
/// # Panics
///
/// If no loop runs on this thread.
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
    /// # fn main() -> std::io::Result<()> {
    /// let mut event_loop = EventLoop::new()?;
    /// let sum = event_loop.handle().spawn_blocking(|| (1..=1_000_u64).sum::<u64>());
    /// event_loop.run(RunMode::Default)?;
    /// assert!(sum.is_finished());
    /// # Ok(())
    /// # }
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
            return JoinHandle::never_started();
        }
        let site = Location::caller();
        let purpose = Purpose::new(class, "spawn_blocking").at(site);
        let work = Work::submit(self, purpose, job);
        let key = work.as_ref().ok().map(|work| work.key);
        let task = async move {
            match work {
                // A panic of the job resumes in this task, whose join handle returns it.
                Ok(work) => work.await,
                // `resume_unwind` does not call the panic hook: the caller receives the error.
                Err(error) => resume_unwind(Box::new(error.to_string())),
            }
        };
        let task = self.core().executor().spawn(task, site, None);
        if let (Some(key), Some(id)) = (key, task.id()) {
            self.core().hand_job_to(key, id);
        }
        task
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
    job: Arc<dyn Awaited<T>>,
}

/// The loop of a job.
struct HomeLoop {
    remote: Remote,
    key: JobKey,
}

/// Completions go through the inbox, even if a job completes before it is awaited, so that they
/// arrive in the poll phase and in order.
// Rule R277.
impl Home for HomeLoop {
    fn send(&self, ended: Arc<dyn Arrival>) -> bool {
        self.remote.send(ended)
    }

    fn is_gone(&self) -> bool {
        self.remote.is_closed()
    }

    fn arrived(&self) {
        let after = LoopHandle::current().core().end_job(self.key);
        if let Some(after) = after {
            after();
        }
    }
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
        let (key, job) = submit(handle, purpose, job)?;
        Ok(Self {
            handle: handle.clone(),
            key,
            job,
        })
    }
}

/// A job of a loop.
type HomeJob<F, T> = Arc<Job<F, T, HomeLoop>>;

/// Submits a job to the pool.
///
/// # Errors
///
/// If the loop was dropped, or if the pool has no thread and none can be started.
fn submit<F, T>(
    handle: &LoopHandle,
    purpose: Purpose,
    job: F,
) -> io::Result<(JobKey, HomeJob<F, T>)>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    if handle.is_closed() {
        return Err(io::Error::other(Error::LOOP_CLOSED));
    }
    let core = handle.core();
    let key = core.begin_job(purpose);
    let home = HomeLoop {
        remote: handle.remote(),
        key,
    };
    let job = Job::new(home, job);
    let submitted = core.pool().submit(purpose.class, job.clone());
    if let Err(error) = submitted {
        core.end_job(key);
        return Err(no_thread(&error));
    }
    Ok((key, job))
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
            Ok(output) => output,
            Err(panic) => resume_unwind(panic),
        })
    }
}

impl<T> Drop for Work<T> {
    fn drop(&mut self) {
        let has_arrived = self.job.cancel();
        if !has_arrived && !self.handle.is_closed() {
            self.handle.core().end_job(self.key);
        }
    }
}

impl<T> fmt::Debug for Work<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").finish_non_exhaustive()
    }
}
