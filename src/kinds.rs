//! The loop's vocabulary: its phases, and the kinds of things that keep it alive.

use std::fmt;
use std::panic::Location;

/// A line of a program: the one that made a handle, spawned a task, or waits for something.
pub(crate) type Site = &'static Location<'static>;

/// A phase of the loop. The order of the variants is the order of one turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Completions that were put off: known at once, delivered later.
    Pending,
    /// Idle hooks; the loop does not sleep while there is one.
    Idle,
    /// Prepare hooks, right before the wait.
    Prepare,
    /// The wait for I/O, wakes from other threads and finished pool work.
    Poll,
    /// Check hooks and immediates, right after the wait.
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

/// What can keep a loop alive; [`LoopHandle::keepers`](crate::LoopHandle::keepers) counts them.
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
    /// Something queued for a phase: an immediate, an awaited phase, a put-off completion.
    Queued,
    /// An open [`AsyncHandle`](crate::AsyncHandle).
    Async,
    /// A [`Source`](crate::io::Source) that somebody waits for.
    Io,
    /// A started [`PollHandle`](crate::io::PollHandle).
    Poll,
    /// Work in flight on other threads.
    Work,
    /// Somebody who listens to a signal.
    Signal,
    /// A child process that runs.
    Child,
    /// Somebody who watches a file or directory.
    Watch,
    /// A handle whose close has not been reported.
    Closing,
    /// The future of `block_on`.
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
