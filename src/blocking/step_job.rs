//! Work that is not awaited and cannot be cancelled, in steps that take turns with other jobs.
//!
//! ```text
//!   start ──> queued ── step ──> queued again, behind others ── step ──> ended, in the poll phase
//! ```

use std::io;
use std::sync::Arc;

use crate::event_loop::ledger::jobs::{JobKey, Purpose};
use crate::pool::{Class, Job, Pool};
use crate::raw::unwind::ignore_panic;
use crate::runtime::loop_handle::LoopHandle;
use crate::runtime::remote::Remote;
use crate::site::Site;

/// Work that is done step by step.
pub(crate) trait Steps: Send + Sync + 'static {
    /// Runs one step on a thread of the pool. It was the last one if it returns `false` or panics.
    fn step(self: &Arc<Self>) -> bool;
    /// Runs once after the last step: on the owner thread in the poll phase, or on any thread if
    /// the loop was dropped.
    fn ended(self: &Arc<Self>);
}

/// Submits the first step to the pool. The work keeps the loop alive until the last step has
/// completed.
///
/// # Errors
///
/// If the pool has no thread and none can be started; [`Steps::ended`] runs in this case, too.
pub(crate) fn start(
    handle: &LoopHandle,
    purpose: Purpose,
    steps: Arc<impl Steps>,
) -> io::Result<()> {
    let (core, class) = (handle.core(), purpose.class);
    let (pool, key) = (core.pool().clone(), core.begin_job(purpose));
    let job = Arc::new(StepJob {
        steps,
        class,
        key,
        pool: pool.clone(),
        remote: handle.remote(),
    });
    pool.submit(class, job)
        .inspect_err(|_| drop(core.end_job(key)))
}

/// A run of steps, owned by the queue, then by a thread, at last by the loop's inbox. Its drop
/// calls [`Steps::ended`].
struct StepJob<S: Steps> {
    steps: Arc<S>,
    class: Class,
    key: JobKey,
    pool: Pool,
    remote: Remote,
}

impl<S: Steps> Job for StepJob<S> {
    #[inline]
    fn run(self: Arc<Self>) {
        // A step that panics is the last one. The panic hook has printed the panic, and the loop
        // must still receive the completion.
        let goes_on = ignore_panic(|| self.steps.step()).unwrap_or(false);
        if goes_on {
            let pool = self.pool.clone();
            let queued = pool.submit(self.class, self);
            debug_assert!(queued.is_ok(), "this is one of the pool's threads");
        } else {
            let remote = self.remote.clone();
            remote.send(self);
        }
    }

    #[inline]
    fn arrive(self: Arc<Self>) {
        LoopHandle::current().core().end_job(self.key);
    }

    #[inline]
    fn site(&self) -> Option<Site> {
        LoopHandle::current().core().ledger.job_site(self.key)
    }
}

impl<S: Steps> Drop for StepJob<S> {
    #[inline]
    fn drop(&mut self) {
        self.steps.ended();
    }
}
