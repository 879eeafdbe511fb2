//! The areas of the debug log.

/// A part of the loop that has lines of its own in the debug log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "probe"),
    allow(dead_code, reason = "without the feature there is no log")
)]
pub(crate) enum Area {
    Loop,
    Timers,
    Poll,
    Io,
    Tasks,
    Lanes,
    Pool,
    Signal,
    Process,
    Fs,
    Node,
    Context,
}

#[cfg(feature = "probe")]
impl Area {
    /// The areas with their names, in the order of declaration.
    pub(super) const NAMED: [(Self, &str); 12] = [
        (Self::Loop, "loop"),
        (Self::Timers, "timers"),
        (Self::Poll, "poll"),
        (Self::Io, "io"),
        (Self::Tasks, "tasks"),
        (Self::Lanes, "lanes"),
        (Self::Pool, "pool"),
        (Self::Signal, "signal"),
        (Self::Process, "process"),
        (Self::Fs, "fs"),
        (Self::Node, "node"),
        (Self::Context, "context"),
    ];
}
