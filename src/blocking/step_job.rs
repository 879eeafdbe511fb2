//! Work that nobody awaits and nothing cancels, in steps that take turns with other jobs.
//!
//! ```text
//!   start ──> queued ── step ──> queued again, behind the others ── step ──> ended, in the poll phase
//! ```

use std::io;
use std::sync::Arc;

use crate::event_loop::api::loop_handle::LoopHandle;
use crate::event_loop::api::remote::Remote;
use crate::event_loop::phases::jobs::{JobKey, Purpose};
use crate::executor::message::Arrival;
use crate::pool::{Class, Pool, Run};
use crate::raw::unwind::quietly;

/// What is done, step by step.
pub(crate) trait Steps: Send + Sync + 'static {
    /// On a thread of the pool. `false`, or a panic: that was the last one.
    fn step(self: &Arc<Self>) -> bool;
    /// Once, after the last step: on the loop's thread, in the poll phase; where it happens to be, if the loop is gone.
    fn ended(self: &Arc<Self>);
}

/// Hands the first step to the pool. The loop stays alive until the end of the last one.
///
/// # Errors
///
/// When the pool has no thread and none can be started; this is the end, too.
pub(crate) fn start(
    handle: &LoopHandle,
    purpose: Purpose,
    steps: Arc<impl Steps>,
) -> io::Result<()> {
    let (core, class) = (handle.core(), purpose.class);
    let (pool, key) = (core.pool(), core.begin_job(purpose));
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

/// The way of the steps: owned by the queue, then by a thread, in the end by the loop's inbox. Whoever drops it ends it.
struct StepJob<S: Steps> {
    steps: Arc<S>,
    class: Class,
    key: JobKey,
    pool: Pool,
    remote: Remote,
}

impl<S: Steps> Run for StepJob<S> {
    fn run(self: Arc<Self>) {
        // A step that panics is the last one: the panic hook has reported it, and the loop has to hear of the end.
        let goes_on = quietly(|| self.steps.step()).unwrap_or(false);
        if goes_on {
            let pool = self.pool.clone();
            let queued = pool.submit(self.class, self);
            debug_assert!(queued.is_ok(), "this is one of the pool's threads");
        } else {
            let remote = self.remote.clone();
            remote.send(self);
        }
    }
}

impl<S: Steps> Arrival for StepJob<S> {
    fn arrive(self: Arc<Self>) {
        LoopHandle::current().core().end_job(self.key);
    }
}

impl<S: Steps> Drop for StepJob<S> {
    fn drop(&mut self) {
        self.steps.ended();
    }
}
