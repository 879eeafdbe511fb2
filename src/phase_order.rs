//! The phases of one turn of the loop.

use std::fmt;

/// A phase of the loop. The order of the variants is the order of one turn.
///
/// # Examples
///
/// ```
/// use phaseloop::phase::Phase;
///
/// fn main() {
///     assert!(Phase::Poll < Phase::Check, "in the order of a turn");
///     println!("{}", Phase::Poll);
/// }
/// ```
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

impl Phase {
    /// The phases, in the order of one turn.
    pub(crate) const ALL: [Self; 7] = [
        Self::Pending,
        Self::Idle,
        Self::Prepare,
        Self::Poll,
        Self::Check,
        Self::Closing,
        Self::Timers,
    ];
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
