//! Work with a callback instead of a future, as libuv's `uv_queue_work`.

use std::fmt;
use std::io;
use std::panic::Location;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::job::{Awaited, Cancelled, TakeBack};
use super::submit;
use crate::event_loop::api::loop_handle::LoopHandle;
use crate::event_loop::phases::jobs::Purpose;
use crate::executor::join::JoinError;
use crate::pool::Class;

/// Work queued by [`LoopHandle::queue_work`]. Dropping this does not take the work back.
pub struct QueuedWork {
    job: Arc<dyn TakeBack>,
}

impl QueuedWork {
    /// Takes the work back, if no thread has begun with it: the closure is dropped unrun, and the
    /// callback gets an error for which [`is_cancelled`](JoinError::is_cancelled) holds. `false`:
    /// it runs, has ended, or was taken back before.
    ///
    /// The callback comes in the poll phase, never inside this call; of several that are cancelled,
    /// in the order in which they were. A panic in the drop of the closure is reported by the panic
    /// hook and goes nowhere else.
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
    /// phase. libuv's `uv_queue_work`; in async code, [`spawn_blocking`](Self::spawn_blocking) is
    /// simpler.
    ///
    /// Callbacks come in the order in which the work has ended, each followed by a drain of the
    /// lanes. Until then the work keeps the loop alive. Of a loop that is dropped, no callback is
    /// called: work that waits for a thread is dropped unrun, and what runs is left alone.
    ///
    /// The callback gets an error when `work` has panicked, or was [cancelled](QueuedWork::cancel).
    ///
    /// # Errors
    ///
    /// When the loop is gone; when the pool has no thread and none can be started. Neither closure
    /// is called then.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{EventLoop, RunMode};
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let mut event_loop = EventLoop::new()?;
    /// event_loop.handle().queue_work(
    ///     || (1..=1_000_u64).sum::<u64>(),
    ///     |sum| assert_eq!(sum.unwrap(), 500_500),
    /// )?;
    /// assert!(!event_loop.run(RunMode::Default)?);
    /// # Ok(())
    /// # }
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
    /// As [`queue_work`](Self::queue_work).
    #[track_caller]
    pub fn queue_work_as<T: Send + 'static>(
        &self,
        class: Class,
        work: impl FnOnce() -> T + Send + 'static,
        after: impl FnOnce(Result<T, JoinError>) + 'static,
    ) -> io::Result<QueuedWork> {
        let purpose = Purpose::new(class, "queue_work").at(Location::caller());
        let (key, job) = submit(self, purpose, work)?;
        let ended = Ended { job: job.clone() };
        let after = Box::new(move || after(ended.take()));
        self.core().call_after_job(key, after);
        Ok(QueuedWork { job })
    }
}

/// The result that a callback waits for. Dropped with its loop, it cancels the work.
struct Ended<T> {
    job: Arc<dyn Awaited<T>>,
}

impl<T> Ended<T> {
    /// For the callback, whose call says that the end has arrived.
    fn take(self) -> Result<T, JoinError> {
        match self.job.poll(&Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(output)) => Ok(output),
            Poll::Ready(Err(panic)) if panic.is::<Cancelled>() => Err(JoinError::cancelled()),
            Poll::Ready(Err(panic)) => Err(JoinError::panicked(panic)),
            Poll::Pending => unreachable!("its end has arrived"),
        }
    }
}

impl<T> Drop for Ended<T> {
    fn drop(&mut self) {
        self.job.cancel();
    }
}
