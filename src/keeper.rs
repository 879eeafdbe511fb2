//! What keeps a loop alive.

use std::fmt;

/// The kinds of handles and requests that can keep a loop alive;
/// [`LoopHandle::keepers`](crate::LoopHandle::keepers) counts them.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::{Keeper, LoopHandle, time::Timer};
///
/// #[phaseloop::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let handle = LoopHandle::current();
///     let timer = Timer::new(&handle);
///     timer.start(Duration::from_secs(60), Duration::ZERO, |_| ())?;
///     assert!(handle.keepers().contains(&(Keeper::Timer, 1)));
///     timer.stop();
///     Ok(())
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Keeper {
    /// A started [`Timer`](crate::time::Timer).
    Timer,
    /// A [`sleep`](crate::time::sleep) that was polled and is not due.
    Sleep,
    /// A started [`Idle`](crate::phase::Idle) hook.
    Idle,
    /// A started [`Prepare`](crate::phase::Prepare) hook.
    Prepare,
    /// A started [`Check`](crate::phase::Check) hook.
    Check,
    /// An entry in the queue of a phase: an immediate, a task that waits for a phase, a deferred
    /// completion.
    Queued,
    /// An open [`AsyncHandle`](crate::AsyncHandle).
    Async,
    /// A [`Source`](crate::io::Source) with a waiting task.
    Io,
    /// A started [`PollHandle`](crate::io::PollHandle).
    Poll,
    /// A job of the thread pool.
    Work,
    /// A started signal listener.
    Signal,
    /// A running child process.
    Child,
    /// A file watcher.
    Watch,
    /// A closing handle.
    Closing,
    /// The main future of `block_on`.
    MainFuture,
    /// A task of a runtime inside the loop (`Builder::tokio`), or one of the loop that may wait for
    /// that runtime.
    Runtime,
}

impl Keeper {
    pub(crate) const COUNT: usize = 16;

    /// Every kind, in the order of declaration.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Timer,
        Self::Sleep,
        Self::Idle,
        Self::Prepare,
        Self::Check,
        Self::Queued,
        Self::Async,
        Self::Io,
        Self::Poll,
        Self::Work,
        Self::Signal,
        Self::Child,
        Self::Watch,
        Self::Closing,
        Self::MainFuture,
        Self::Runtime,
    ];

    /// Returns the name of the kind, as reports print it.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Timer => "timer",
            Self::Sleep => "sleep",
            Self::Idle => "idle hook",
            Self::Prepare => "prepare hook",
            Self::Check => "check hook",
            Self::Queued => "queued entry",
            Self::Async => "async handle",
            Self::Io => "I/O source",
            Self::Poll => "poll handle",
            Self::Work => "work on another thread",
            Self::Signal => "signal listener",
            Self::Child => "child process",
            Self::Watch => "file watcher",
            Self::Closing => "closing handle",
            Self::MainFuture => "future of block_on",
            Self::Runtime => "task with the runtime inside the loop",
        }
    }
}

impl fmt::Display for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
