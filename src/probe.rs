//! Observation of the loop: its phases, callbacks and task polls.
//!
//! With the feature `probe`, an [`Observer`] set by [`Builder::observer`](crate::Builder::observer)
//! receives every [`Fact`]. Without the feature the calls compile to nothing.
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

/// Uses each item of the two variants, `on.rs` and `off.rs`, so that a difference between their
/// signatures does not compile.
const _: () = {
    use crate::phase_order::Phase;
    use crate::task_info::Info;
    fn _parity(probe: &Probe) {
        let _: bool = probe.is_silent();
        let _: Span<'_> = probe.phase(Phase::Poll);
        let _: Span<'_> = probe.callback(Phase::Poll);
        let _: Span<'_> = probe.poll(|| None::<Info>);
    }
};
