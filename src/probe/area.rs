//! The areas of the log.

/// A part of the loop that logs lines of its own; see [`Observer::log`](super::Observer::log).
///
/// # Examples
///
/// ```
/// use phaseloop::observe::Area;
///
/// fn main() {
///     // The names for the variable `PHASELOOP_DEBUG`.
///     for area in Area::ALL {
///         println!("{}", area.name());
///     }
///     assert_eq!(Area::Timers.name(), "timers");
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Area {
    /// Turns; callbacks of hooks, queues and closes.
    Loop,
    /// Timers and sleeps that are armed or fire.
    Timers,
    /// Waits, and how many events end them.
    Poll,
    /// Sources that are ready.
    Io,
    /// Tasks that are spawned, woken, polled, or have ended.
    Tasks,
    /// Ticks and microtasks.
    Lanes,
    /// Jobs of the thread pool that are queued or have completed.
    Pool,
    /// Signals that a listener receives.
    Signal,
    /// Children that are started or have exited.
    Process,
    /// File operations that are queued or have completed; changes that a watcher sees.
    Fs,
    /// Timers, requests, uncaught errors and the exit of a Node program.
    Node,
    /// Values that are set, and what takes them along.
    Context,
}

impl Area {
    /// Every area, in the order of declaration.
    pub const ALL: [Self; 12] = [
        Self::Loop,
        Self::Timers,
        Self::Poll,
        Self::Io,
        Self::Tasks,
        Self::Lanes,
        Self::Pool,
        Self::Signal,
        Self::Process,
        Self::Fs,
        Self::Node,
        Self::Context,
    ];

    /// Returns the name of the area, as `PHASELOOP_DEBUG` spells it.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::observe::Area;
    ///
    /// fn main() {
    ///     // The names for the variable `PHASELOOP_DEBUG`.
    ///     for area in Area::ALL {
    ///         println!("{}", area.name());
    ///     }
    ///     assert_eq!(Area::Timers.name(), "timers");
    /// }
    /// ```
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loop => "loop",
            Self::Timers => "timers",
            Self::Poll => "poll",
            Self::Io => "io",
            Self::Tasks => "tasks",
            Self::Lanes => "lanes",
            Self::Pool => "pool",
            Self::Signal => "signal",
            Self::Process => "process",
            Self::Fs => "fs",
            Self::Node => "node",
            Self::Context => "context",
        }
    }
}
