//! The thread pool for work that would block the loop, modelled on libuv's.
//!
//! ```
//! use phaseloop::{pool::Pool, spawn_blocking};
//!
//! #[phaseloop::main]
//! async fn main() {
//!     // The loop goes on while a thread of the pool computes.
//!     let sum = spawn_blocking(|| (1..=1_000_000_u64).sum::<u64>()).await;
//!     assert_eq!(sum.unwrap(), 500_000_500_000);
//!     println!("{} threads", Pool::global().stats().threads);
//! }
//! ```
//!
//! One pool serves the whole process. Its first job starts 4 threads, or as many as the environment
//! variable `UV_THREADPOOL_SIZE` says. Jobs start in the order of submission. Jobs of a class with
//! a limit, by default name lookups, occupy at most that many threads, so that slow jobs leave
//! threads for the others. A loop can have a pool of its own:
//! [`Builder::pool`](crate::Builder::pool).
//!
//! The pool does not depend on loops: a job delivers its own result, and knows whether it was
//! cancelled.

mod metrics;
mod queue;
mod workers;

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use self::metrics::PoolMetrics;
use self::workers::Workers;
use crate::site::Site;

/// The default number of threads, and the upper limit.
const DEFAULT_THREADS: usize = 4;
const MOST_THREADS: usize = 1024;

/// The class of a job. Each class can have its own limit.
///
/// # Examples
///
/// ```
/// use phaseloop::pool::Class;
/// use phaseloop::spawn_blocking_as;
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     let job = spawn_blocking_as(Class::Fs, || std::fs::read("Cargo.toml"));
///     assert!(job.await.unwrap()?.starts_with(b"[package]"));
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// Computation, and every job of [`spawn_blocking`](crate::spawn_blocking) without a class.
    Cpu,
    /// Files and directories.
    Fs,
    /// Name lookups, which are slow and mostly wait. By default they occupy at most half of the
    /// threads, rounded up.
    Dns,
}

impl Class {
    const COUNT: usize = 3;
}

/// A job: work for a thread of the pool, and a completion for a loop.
///
/// A thread of the pool calls `run`. The owner thread of the loop calls all other functions, except
/// where they say otherwise.
pub(crate) trait Job: Send + Sync {
    /// Does the work and sends the completion to the loop. It is called once, in the job's turn,
    /// even if the job was cancelled meanwhile.
    fn run(self: Arc<Self>);

    /// Takes notice of the completion, as a callback of the poll phase.
    fn arrive(self: Arc<Self>);

    /// Called when the loop is dropped before the completion has arrived. It must not run user code
    /// other than wakers and drops, and catches their panics.
    fn abandon(self: Arc<Self>) {}

    /// Cancels the job in the microtask lane, unless its completion has arrived by now. Any thread
    /// may call it.
    fn abort(self: Arc<Self>) {}

    /// Returns whether the output can be taken, or never will be. Any thread may call it.
    fn is_over(&self) -> bool {
        false
    }

    /// Completes the job as cancelled if no thread has taken it; the completion is delivered like
    /// any other. Returns `false` if a thread has taken it.
    fn take_back(self: Arc<Self>) -> bool {
        false
    }

    /// Returns the line that started the job, if known, for reports.
    fn site(&self) -> Option<Site> {
        None
    }

    /// Returns the data pointer of the waker that awaits the output, for reports.
    fn awaiter(&self) -> Option<*const ()> {
        None
    }
}

/// A pool of threads for blocking work.
///
/// Clones share the pool. Its threads end once the last clone and the last loop that uses it are
/// dropped and the queue is empty. The process-wide pool never ends.
///
/// # Examples
///
/// ```
/// use phaseloop::{pool::Pool, spawn_blocking};
///
/// #[phaseloop::main]
/// async fn main() -> std::io::Result<()> {
///     spawn_blocking(|| 6 * 7).await.unwrap();
///     let stats = Pool::global().stats();
///     assert!(stats.started >= 1);
///     println!("{} threads, longest wait {:?}", stats.threads, stats.longest_wait);
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Pool {
    workers: Arc<Workers>,
}

impl Pool {
    /// Returns the pool of the process. Its first job starts its threads.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{pool::Pool, spawn_blocking};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     spawn_blocking(|| ()).await.unwrap();
    ///     let pool = Pool::global();
    ///     println!("{} threads", pool.stats().threads);
    ///     println!("{:?}", pool.metrics());
    /// }
    /// ```
    #[must_use]
    pub fn global() -> Self {
        Self::of_process().clone()
    }

    pub(crate) fn of_process() -> &'static Self {
        static GLOBAL: OnceLock<Pool> = OnceLock::new();
        GLOBAL.get_or_init(|| {
            let size = std::env::var_os("UV_THREADPOOL_SIZE");
            let size = size.map(|size| size.to_string_lossy().into_owned());
            PoolBuilder::new()
                .threads(threads_from(size.as_deref()))
                .build()
        })
    }

    /// Queues `job`.
    ///
    /// # Errors
    ///
    /// The OS error of starting a thread, if the pool has no thread.
    pub(crate) fn submit(&self, class: Class, job: Arc<dyn Job>) -> io::Result<()> {
        self.workers.here().submit(class, job)
    }

    /// Returns a pool of the same size and limits without threads. A shuffled loop
    /// [takes](Self::take) its jobs.
    #[cfg(feature = "test-util")]
    pub(crate) fn manual_twin(&self) -> Self {
        Self {
            workers: self.workers.manual_twin(),
        }
    }

    /// Takes the next job of a pool without threads.
    #[cfg(feature = "test-util")]
    pub(crate) fn take(&self) -> Option<(Class, Arc<dyn Job>)> {
        self.workers.take()
    }

    /// Records that a taken job has finished.
    #[cfg(feature = "test-util")]
    pub(crate) fn ended(&self, class: Class) {
        self.workers.ended(class);
    }

    /// Returns the number of threads that the pool has, or would have.
    #[cfg(feature = "test-util")]
    pub(crate) fn size(&self) -> usize {
        self.workers.size()
    }

    /// Returns statistics of the pool.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{pool::Pool, spawn_blocking};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     spawn_blocking(|| ()).await.unwrap();
    ///     let pool = Pool::global();
    ///     println!("{} threads", pool.stats().threads);
    ///     println!("{:?}", pool.metrics());
    /// }
    /// ```
    #[must_use]
    pub fn stats(&self) -> PoolStats {
        self.workers.stats()
    }

    /// Returns what the pool does at this moment, and how long its jobs waited and ran so far.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{pool::Pool, spawn_blocking};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     spawn_blocking(|| ()).await.unwrap();
    ///     let pool = Pool::global();
    ///     println!("{} threads", pool.stats().threads);
    ///     println!("{:?}", pool.metrics());
    /// }
    /// ```
    #[must_use]
    pub fn metrics(&self) -> PoolMetrics {
        self.workers.metrics()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("stats", &self.stats())
            .finish()
    }
}

/// Statistics of a [`Pool`].
///
/// # Examples
///
/// ```
/// use phaseloop::pool::Pool;
///
/// fn main() {
///     let stats = Pool::global().stats();
///     assert!(stats.idle <= stats.threads);
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Threads of the pool.
    pub threads: usize,
    /// Threads without a job.
    pub idle: usize,
    /// Jobs in the queue, including cancelled ones that no thread has discarded yet.
    pub queued: usize,
    /// Jobs taken from the queue so far.
    pub started: u64,
    /// Total time that those jobs spent in the queue.
    pub total_wait: Duration,
    /// Longest time that a job spent in the queue.
    pub longest_wait: Duration,
}

/// Builds a [`Pool`] beside that of the process.
///
/// # Examples
///
/// ```
/// use phaseloop::{Builder, pool::{Class, PoolBuilder}, spawn_blocking};
///
/// fn main() -> std::io::Result<()> {
///     let pool = PoolBuilder::new().threads(2).limit(Class::Fs, 1).name("reader").build();
///     let event_loop = Builder::new().pool(pool).build()?;
///     let name = event_loop.block_on(async {
///         spawn_blocking(|| std::thread::current().name().map(str::to_owned)).await
///     });
///     assert_eq!(name.unwrap().as_deref(), Some("reader"));
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct PoolBuilder {
    threads: usize,
    name: String,
    stack_size: Option<usize>,
    limits: [Option<usize>; Class::COUNT],
    /// Whether the pool has no threads: a shuffled loop takes its jobs.
    #[cfg(feature = "test-util")]
    is_manual: bool,
}

impl PoolBuilder {
    /// Creates a builder for four threads named `phaseloop-worker`, with the default limits.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::pool::{Class, PoolBuilder};
    /// use phaseloop::{Builder, spawn_blocking};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let pool = PoolBuilder::new().threads(2).name("hash").stack_size(1 << 20);
    ///     let pool = pool.limit(Class::Fs, 1).build(); // one thread is left for other jobs
    ///     let event_loop = Builder::new().pool(pool).build()?;
    ///     let name = || std::thread::current().name().map(str::to_owned);
    ///     let name = event_loop.block_on(async move { spawn_blocking(name).await }).unwrap();
    ///     assert_eq!(name.as_deref(), Some("hash"));
    ///     Ok(())
    /// }
    /// ```
    pub fn new() -> Self {
        Self {
            threads: DEFAULT_THREADS,
            name: "phaseloop-worker".to_owned(),
            stack_size: None,
            limits: [None; Class::COUNT],
            #[cfg(feature = "test-util")]
            is_manual: false,
        }
    }

    /// Sets the number of threads, clamped to 1–1024.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::pool::{Class, PoolBuilder};
    /// use phaseloop::{Builder, spawn_blocking};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let pool = PoolBuilder::new().threads(2).name("hash").stack_size(1 << 20);
    ///     let pool = pool.limit(Class::Fs, 1).build(); // one thread is left for other jobs
    ///     let event_loop = Builder::new().pool(pool).build()?;
    ///     let name = || std::thread::current().name().map(str::to_owned);
    ///     let name = event_loop.block_on(async move { spawn_blocking(name).await }).unwrap();
    ///     assert_eq!(name.as_deref(), Some("hash"));
    ///     Ok(())
    /// }
    /// ```
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.clamp(1, MOST_THREADS);
        self
    }

    /// Sets the name of the threads, up to the first NUL byte.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::pool::{Class, PoolBuilder};
    /// use phaseloop::{Builder, spawn_blocking};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let pool = PoolBuilder::new().threads(2).name("hash").stack_size(1 << 20);
    ///     let pool = pool.limit(Class::Fs, 1).build(); // one thread is left for other jobs
    ///     let event_loop = Builder::new().pool(pool).build()?;
    ///     let name = || std::thread::current().name().map(str::to_owned);
    ///     let name = event_loop.block_on(async move { spawn_blocking(name).await }).unwrap();
    ///     assert_eq!(name.as_deref(), Some("hash"));
    ///     Ok(())
    /// }
    /// ```
    pub fn name(mut self, name: &str) -> Self {
        name.split('\0')
            .next()
            .unwrap_or(name)
            .clone_into(&mut self.name);
        self
    }

    /// Sets the stack size of the threads, in bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::pool::{Class, PoolBuilder};
    /// use phaseloop::{Builder, spawn_blocking};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let pool = PoolBuilder::new().threads(2).name("hash").stack_size(1 << 20);
    ///     let pool = pool.limit(Class::Fs, 1).build(); // one thread is left for other jobs
    ///     let event_loop = Builder::new().pool(pool).build()?;
    ///     let name = || std::thread::current().name().map(str::to_owned);
    ///     let name = event_loop.block_on(async move { spawn_blocking(name).await }).unwrap();
    ///     assert_eq!(name.as_deref(), Some("hash"));
    ///     Ok(())
    /// }
    /// ```
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_size = Some(bytes);
        self
    }

    /// Sets the number of threads that jobs of a class may occupy at a time, at least 1.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::pool::{Class, PoolBuilder};
    /// use phaseloop::{Builder, spawn_blocking};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let pool = PoolBuilder::new().threads(2).name("hash").stack_size(1 << 20);
    ///     let pool = pool.limit(Class::Fs, 1).build(); // one thread is left for other jobs
    ///     let event_loop = Builder::new().pool(pool).build()?;
    ///     let name = || std::thread::current().name().map(str::to_owned);
    ///     let name = event_loop.block_on(async move { spawn_blocking(name).await }).unwrap();
    ///     assert_eq!(name.as_deref(), Some("hash"));
    ///     Ok(())
    /// }
    /// ```
    pub fn limit(mut self, class: Class, threads: usize) -> Self {
        self.limits[class as usize] = Some(threads.max(1));
        self
    }

    /// Builds the pool. Its first job starts the threads.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::pool::{Class, PoolBuilder};
    /// use phaseloop::{Builder, spawn_blocking};
    ///
    /// fn main() -> std::io::Result<()> {
    ///     let pool = PoolBuilder::new().threads(2).name("hash").stack_size(1 << 20);
    ///     let pool = pool.limit(Class::Fs, 1).build(); // one thread is left for other jobs
    ///     let event_loop = Builder::new().pool(pool).build()?;
    ///     let name = || std::thread::current().name().map(str::to_owned);
    ///     let name = event_loop.block_on(async move { spawn_blocking(name).await }).unwrap();
    ///     assert_eq!(name.as_deref(), Some("hash"));
    ///     Ok(())
    /// }
    /// ```
    #[must_use = "the pool is used by handing it to a loop's builder"]
    pub fn build(self) -> Pool {
        Pool {
            workers: Workers::new(self),
        }
    }

    /// The effective limit of a class; `None`: all threads.
    fn limit_of(&self, class: usize) -> Option<usize> {
        let usual = (class == Class::Dns as usize).then(|| self.threads.div_ceil(2));
        self.limits[class]
            .or(usual)
            .filter(|&limit| limit < self.threads)
    }
}

impl Default for PoolBuilder {
    fn default() -> Self {
        Self::new()
    }
}

/// Parses the environment variable as libuv does.
fn threads_from(variable: Option<&str>) -> usize {
    let Some(text) = variable.filter(|text| text.len() <= 15) else {
        return DEFAULT_THREADS;
    };
    // C's `atoi` accepts leading space, a sign, digits, and ignores the rest.
    let text = text.trim_start();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
    match digits.parse::<u64>().unwrap_or(0) {
        0 => 1,
        _ if negative => MOST_THREADS,
        number => usize::try_from(number)
            .unwrap_or(MOST_THREADS)
            .min(MOST_THREADS),
    }
}

#[cfg(test)]
mod tests {
    use super::{Class, PoolBuilder, threads_from};

    #[test]
    fn r271_the_size_is_read_as_libuv_reads_it() {
        for (text, threads) in [
            (None, 4),
            (Some("8"), 8),
            (Some(" 16 threads"), 16),
            (Some("0"), 1),
            (Some("many"), 1),
            (Some(""), 1),
            (Some("-3"), 1024),
            (Some("5000"), 1024),
            (Some("0000000000000002"), 4),
        ] {
            assert_eq!(threads_from(text), threads, "{text:?}");
        }
    }

    #[test]
    fn r275_lookups_get_half_of_the_threads_rounded_up() {
        let limits = [1, 2, 3, 4, 5, 8].map(|threads| {
            let builder = PoolBuilder::new().threads(threads);
            builder.limit_of(Class::Dns as usize).unwrap_or(threads)
        });
        assert_eq!(limits, [1, 1, 2, 2, 3, 4]);
    }

    #[test]
    fn bad_values_are_brought_into_range() {
        let builder = PoolBuilder::new()
            .threads(0)
            .limit(Class::Cpu, 0)
            .name("a\0b");
        assert_eq!(builder.threads, 1);
        assert_eq!(builder.limits[Class::Cpu as usize], Some(1));
        assert_eq!(builder.name, "a");
    }
}
