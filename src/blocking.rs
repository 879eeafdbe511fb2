//! Blocking work from async code: run it on the pool, await it on the loop.
//!
//! ```text
//!   spawn_blocking ──> queued ──> taken by a thread ──> ended ──> inbox ──> poll phase: its task is woken
//!                        └── abort, drop: the closure is dropped unrun
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
use crate::event_loop::phases::jobs::{JobKey, Purpose};
use crate::executor::join::JoinHandle;
use crate::executor::message::Arrival;
use crate::pool::Class;

/// Runs a closure that blocks or computes for long on the thread pool.
///
/// The job is queued at once. Its end is delivered in the poll phase: jobs that have ended are delivered in that order, each
/// followed by a drain of the lanes. Until then it keeps the loop alive.
///
/// Dropping the handle lets the job go on; [`abort`](JoinHandle::abort) cancels it, if no thread has taken it yet: the
/// closure is dropped unrun, on the loop's thread, in the microtask lane. One that runs already goes on, and its result is
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
    LoopHandle::current().spawn_blocking_as(class, job)
}

impl LoopHandle {
    /// Runs a closure that blocks or computes for long on the thread pool, for this loop; see
    /// [`spawn_blocking`](crate::spawn_blocking).
    ///
    /// On a loop that is gone the closure is dropped unrun, and the handle reports it cancelled.
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

    /// Runs a job of a given class, whose limit applies; see [`spawn_blocking`](Self::spawn_blocking) and
    /// [`pool`](crate::pool).
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
                // A panic goes on here, where the join handle expects it.
                Ok(work) => work.await,
                // No second message from the panic hook.
                Err(error) => resume_unwind(Box::new(error.to_string())),
            }
        };
        let task = self.core().spawn(task, site, None);
        if let (Some(key), Some(id)) = (key, task.id()) {
            self.core().hand_job_to(key, id);
        }
        task
    }
}

/// A job on the pool, awaited without a task of its own. A panic of the job goes on in the poll.
///
/// It keeps the loop alive until its end has arrived, whether somebody awaits it or not. One that is there longer than its
/// loop can be awaited on another.
///
/// # Cancel safety
///
/// Dropping it cancels the job if no thread has taken it.
pub(crate) struct Work<T> {
    handle: LoopHandle,
    key: JobKey,
    job: Arc<dyn Awaited<T>>,
}

/// The loop that a job belongs to.
struct HomeLoop {
    remote: Remote,
    key: JobKey,
}

/// Through the inbox, also when a job ends before anybody awaits it: ends arrive in the poll phase and in their order.
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
    /// When the loop is gone; when the pool has no thread and none can be started.
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

/// Hands a job to the pool.
///
/// # Errors
///
/// When the loop is gone; when the pool has no thread and none can be started.
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

/// The error of a pool without a thread. Not of the kind of the system's error, which is often
/// `WouldBlock`: a caller would take it for a sign to wait.
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
