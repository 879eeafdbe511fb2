//! The loop's own refusals. What the system refuses stays an [`io::Error`](std::io::Error).

use std::fmt;

/// Why the loop refused.
///
/// Opaque, so that reasons can be added; the predicates are what to match on. The text is for people and
/// may change.
pub struct Error {
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    LoopClosed,
    HandleClosed,
    NeverStarted,
    RanDry,
    Stopped,
}

impl Error {
    pub(crate) const LOOP_CLOSED: Self = Self {
        kind: Kind::LoopClosed,
    };
    pub(crate) const HANDLE_CLOSED: Self = Self {
        kind: Kind::HandleClosed,
    };
    pub(crate) const NEVER_STARTED: Self = Self {
        kind: Kind::NeverStarted,
    };
    pub(crate) const RAN_DRY: Self = Self { kind: Kind::RanDry };
    pub(crate) const STOPPED: Self = Self {
        kind: Kind::Stopped,
    };

    /// The loop has been dropped.
    #[must_use]
    pub fn is_loop_closed(&self) -> bool {
        self.kind == Kind::LoopClosed
    }

    /// The handle was closed before; it cannot be started again.
    #[must_use]
    pub fn is_handle_closed(&self) -> bool {
        self.kind == Kind::HandleClosed
    }

    /// The timer was never started, so there is nothing to repeat.
    #[must_use]
    pub fn is_never_started(&self) -> bool {
        self.kind == Kind::NeverStarted
    }

    /// Nothing could happen any more on the loop, and the main future had not returned.
    #[must_use]
    pub fn is_ran_dry(&self) -> bool {
        self.kind == Kind::RanDry
    }

    /// The loop was stopped before the main future had returned.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.kind == Kind::Stopped
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::LoopClosed => "the event loop has been dropped",
            Kind::HandleClosed => "the handle is closed; make a new one to start again",
            Kind::NeverStarted => "the timer was never started; call `start` before `again`",
            Kind::RanDry => {
                "the main future is still pending, but nothing is left on the loop that could wake it \
                 (use `block_on` if another thread will)"
            }
            Kind::Stopped => "the loop was stopped while the main future was still pending",
        })
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            Kind::LoopClosed => "LoopClosed",
            Kind::HandleClosed => "HandleClosed",
            Kind::NeverStarted => "NeverStarted",
            Kind::RanDry => "RanDry",
            Kind::Stopped => "Stopped",
        };
        f.debug_tuple("Error").field(&kind).finish()
    }
}

impl std::error::Error for Error {}
