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

#[cfg(feature = "probe")]
mod blame;
#[cfg(feature = "probe")]
mod chrome;
#[cfg(feature = "probe")]
mod html;
#[cfg(feature = "probe")]
mod json;
#[cfg(not(feature = "probe"))]
mod off;
#[cfg(feature = "probe")]
mod on;
#[cfg(feature = "probe")]
mod record;
#[cfg(feature = "probe")]
mod recorder;
#[cfg(feature = "probe")]
mod ring;
#[cfg(feature = "probe")]
mod trace;

#[cfg(feature = "probe")]
pub use blame::{Blame, Culprit, SlowPeriod, Suspect};
#[cfg(not(feature = "probe"))]
pub(crate) use off::{Probe, Span};
#[cfg(feature = "probe")]
pub use on::{Fact, Observer};
#[cfg(feature = "probe")]
pub(crate) use on::{Probe, Span};
#[cfg(feature = "probe")]
pub use record::{Record, Subject, What};
#[cfg(feature = "probe")]
pub use recorder::Recorder;

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
