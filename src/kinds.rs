//! The phases of the loop, the kinds of handles and requests that keep it alive, and source
//! locations.

use std::fmt;
use std::panic::Location;

/// A line of the program: it created a handle, spawned a task, or waits.
pub(crate) type Site = &'static Location<'static>;

/// A phase of the loop. The order of the variants is the order of one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Deferred completions: results that were known at once and are delivered later.
    Pending,
    /// Idle hooks. The loop does not wait in the poll phase while one is started.
    Idle,
    /// Prepare hooks, right before the wait for I/O.
    Prepare,
    /// The wait for I/O, wakes from other threads and finished pool work.
    Poll,
    /// Check hooks and immediates, right after the wait for I/O.
    Check,
    /// Close callbacks.
    Closing,
    /// Timers and sleeps that are due.
    Timers,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "pending",
            Self::Idle => "idle",
            Self::Prepare => "prepare",
            Self::Poll => "poll",
            Self::Check => "check",
            Self::Closing => "closing",
            Self::Timers => "timers",
        })
    }
}

/// The kinds of handles and requests that can keep a loop alive;
/// [`LoopHandle::keepers`](crate::LoopHandle::keepers) counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
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
    Root,
}

impl Kind {
    pub(crate) const COUNT: usize = 15;

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
        Self::Root,
    ];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
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
            Self::Root => "future of block_on",
        })
    }
}
