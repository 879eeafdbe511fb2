//! Work with a callback instead of a future: libuv's `uv_queue_work`.

use std::fmt;
use std::io;
use std::panic::Location;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::begin;
use super::job::Cancelled;
use crate::event_loop::ledger::jobs::Purpose;
use crate::executor::join::{Awaited, JoinError};
use crate::pool::{Class, Job};
use crate::runtime::loop_handle::LoopHandle;
use crate::task_info::Id;

/// Work that was queued by [`LoopHandle::queue_work`]. Dropping this value does not cancel the
/// work.
///
/// # Examples
///
/// ```
/// use phaseloop::{EventLoop, RunMode};
///
/// fn main() -> std::io::Result<()> {
///     let mut event_loop = EventLoop::new()?;
///     let work = event_loop.handle().queue_work(
///         || println!("on a thread of the pool, unless it was cancelled before"),
///         |result| println!("cancelled: {}", result.is_err_and(|error| error.is_cancelled())),
///     )?;
///     work.cancel();
///     event_loop.run(RunMode::Default)?;
///     Ok(())
/// }
/// ```
pub struct QueuedWork {
    job: Arc<dyn Job>,
}

impl QueuedWork {
    /// Cancels the work if no thread has taken it: the closure is dropped without a call, and the
    /// callback receives an error for which [`is_cancelled`](JoinError::is_cancelled) is `true`.
    /// Returns `false` if the work runs, has completed, or was cancelled before.
    ///
    /// The callback runs in the poll phase, never inside this call. The callbacks of several
    /// cancelled items run in the order of cancellation. A panic of the closure's drop is printed
    /// by the panic hook and does not propagate.
    pub fn cancel(&self) -> bool {
        self.job.clone().take_back()
    }
}

impl fmt::Debug for QueuedWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueuedWork").finish_non_exhaustive()
    }
}

impl LoopHandle {
    /// Runs `work` on the thread pool, then calls `after` with its result on the loop, in the poll
    /// phase. It is libuv's `uv_queue_work`; in async code,
    /// [`spawn_blocking`](Self::spawn_blocking) is simpler.
    ///
    /// Callbacks run in the order of completion, and a drain of the lanes follows each. The work
    /// keeps the loop alive until then. Dropping the loop drops the callbacks and the work that
    /// waits for a thread; work that runs continues.
    ///
    /// The callback receives an error if `work` panicked or was [cancelled](QueuedWork::cancel).
    ///
    /// # Errors
    ///
    /// If the loop was dropped, or if the pool has no thread and none can be started. Then neither
    /// closure is called.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, RunMode};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let mut event_loop = EventLoop::new()?;
    ///     event_loop.handle().queue_work(
    ///         || (1..=1_000_u64).sum::<u64>(),
    ///         |sum| assert_eq!(sum.unwrap(), 500_500),
    ///     )?;
    ///     assert!(!event_loop.run(RunMode::Default)?);
    ///     Ok(())
    /// }
    /// ```
    #[track_caller]
    pub fn queue_work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
        after: impl FnOnce(Result<T, JoinError>) + 'static,
    ) -> io::Result<QueuedWork> {
        self.queue_work_as(Class::Cpu, work, after)
    }

    /// Runs work of a given class, whose limit applies; see [`queue_work`](Self::queue_work) and
    /// [`pool`](crate::pool).
    ///
    /// # Errors
    ///
    /// The conditions of [`queue_work`](Self::queue_work) apply.
    #[track_caller]
    pub fn queue_work_as<T: Send + 'static>(
        &self,
        class: Class,
        work: impl FnOnce() -> T + Send + 'static,
        after: impl FnOnce(Result<T, JoinError>) + 'static,
    ) -> io::Result<QueuedWork> {
        let purpose = Purpose::new(class, "queue_work").at(Location::caller());
        let job = begin(self, purpose, work)?;
        let ended = Ended { job: job.clone() };
        let after = Box::new(move || after(ended.take()));
        self.core().ledger.call_after_job(job.home.key(), after);
        Ok(QueuedWork { job })
    }
}

/// The result for a callback. Its drop, with the loop, cancels the work.
struct Ended<T> {
    job: Arc<dyn Awaited<T>>,
}

impl<T> Ended<T> {
    /// Takes the result for the callback, which runs only after the completion has arrived.
    fn take(self) -> Result<T, JoinError> {
        match self.job.poll(&Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(Ok(output))) => Ok(output),
            Poll::Ready(Some(Err(panic))) if panic.is::<Cancelled>() => {
                Err(JoinError::cancelled(Id::NONE))
            }
            Poll::Ready(Some(Err(panic))) => Err(JoinError::panicked(panic, Id::NONE)),
            Poll::Ready(None) | Poll::Pending => unreachable!("its end has arrived"),
        }
    }
}

impl<T> Drop for Ended<T> {
    fn drop(&mut self) {
        self.job.cancel();
    }
}
