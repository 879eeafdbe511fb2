//! What a pool counts of itself.

use crate::histogram::Histogram;

/// What a [`Pool`](super::Pool) does and did; see [`Pool::metrics`](super::Pool::metrics).
///
/// # Examples
///
/// ```
/// use phaseloop::{pool::PoolBuilder, spawn_blocking};
///
/// fn main() -> std::io::Result<()> {
///     let pool = PoolBuilder::new().threads(2).build();
///     let mut event_loop = phaseloop::Builder::new().pool(pool.clone()).build()?;
///     event_loop.block_on(async { spawn_blocking(|| 6 * 7).await.unwrap() });
///     let metrics = pool.metrics();
///     assert_eq!((metrics.threads, metrics.queued, metrics.waited.count()), (2, 0, 1));
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PoolMetrics {
    /// Threads of the pool.
    pub threads: usize,
    /// Threads that run a job.
    pub busy: usize,
    /// Jobs in the queue, of all classes, including cancelled ones that no thread has discarded
    /// yet.
    pub queued: usize,
    /// Jobs that have ended.
    pub done: u64,
    /// How long the jobs that were taken from the queue had waited there.
    pub waited: Histogram,
    /// How long the jobs that have ended ran.
    pub ran: Histogram,
}

impl PoolMetrics {
    /// Returns what happened between `earlier` and this copy. Threads, busy ones and queued jobs
    /// stay as they are.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{pool::Pool, spawn_blocking};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let pool = Pool::global();
    ///     let before = pool.metrics();
    ///     spawn_blocking(|| ()).await.unwrap();
    ///     println!("{:?}", pool.metrics().since(&before)); // of this job
    /// }
    /// ```
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            done: self.done.saturating_sub(earlier.done),
            waited: self.waited.since(&earlier.waited),
            ran: self.ran.since(&earlier.ran),
            ..*self
        }
    }
}
