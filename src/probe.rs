//! What the loop reports of itself: one point per phase, per callback and per task poll.
//!
//! With the feature `probe`, an [`Observer`] given to [`Builder::observer`](crate::Builder::observer) sees
//! every [`Fact`]; without it the calls compile to nothing. The two sides are a pair of files with the same
//! signatures, so no other file asks which one is in force.
//!
//! ```text
//! PhaseStart ─┬─> CallbackStart ─┬─> PollStart ─> PollEnd ─┬─> CallbackEnd ─┬─> PhaseEnd
//!             │                  └─────── per task ────────┘                │
//!             └──────────────────────── per callback ───────────────────────┘
//! ```

#[cfg(not(feature = "probe"))]
mod off;
#[cfg(feature = "probe")]
mod on;

#[cfg(not(feature = "probe"))]
pub(crate) use off::{Probe, Span};
#[cfg(feature = "probe")]
pub use on::{Fact, Observer};
#[cfg(feature = "probe")]
pub(crate) use on::{Probe, Span};

/// Both sides offer the same items; a difference fails to compile in either configuration.
const _: () = {
    use crate::executor::Info;
    use crate::turn::Phase;
    fn _parity(probe: &Probe) {
        let _: Span<'_> = probe.phase(Phase::Poll);
        let _: Span<'_> = probe.callback(Phase::Poll);
        let _: Span<'_> = probe.poll(|| None::<Info>);
    }
};
