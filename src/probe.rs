//! Observation of the loop: its phases, callbacks and task polls.
//!
//! With the feature `probe`, an [`Observer`] set by [`Builder::observer`](crate::Builder::observer)
//! receives every [`Fact`], and a [`Recorder`] keeps records. A loop that nothing watches tests one
//! byte for each callback and each poll.
//!
//! ```text
//! PhaseStart ─┬─> CallbackStart ─┬─> PollStart ─> PollEnd ─┬─> CallbackEnd ─┬─> PhaseEnd
//!             │                  └─────── per task ────────┘                │
//!             └──────────────────────── per callback ───────────────────────┘
//! ```

mod area;
#[cfg(feature = "probe")]
mod blame;
#[cfg(feature = "probe")]
mod chrome;
#[cfg(feature = "probe")]
mod debug_log;
#[cfg(feature = "probe")]
mod environment;
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
mod recording;
#[cfg(feature = "probe")]
mod ring;
mod switch;
#[cfg(feature = "probe")]
mod trace;
#[cfg(feature = "probe")]
mod trace_file;
#[cfg(feature = "tracing")]
mod traced;
#[cfg(feature = "probe")]
mod watchdog;

pub(crate) use area::Area;
#[cfg(feature = "probe")]
pub use blame::{Blame, Culprit, SlowPeriod, Suspect};
#[cfg(not(feature = "probe"))]
pub(crate) use off::{Probe, Recording, Running, Sinks, Span};
#[cfg(feature = "probe")]
pub use on::{Fact, Lane, Observer};
#[cfg(feature = "probe")]
pub(crate) use on::{Probe, Running, Sinks, Span};
#[cfg(feature = "probe")]
pub use record::{Record, Subject, What};
#[cfg(feature = "probe")]
pub use recorder::Recorder;
#[cfg(feature = "probe")]
pub(crate) use recording::Recording;
pub use switch::Origin;
pub(crate) use switch::{Activity, Mode, Modes};
#[cfg(feature = "probe")]
pub use watchdog::{Stall, Watchdog};

/// Uses each item of the two variants, `on.rs` and `off.rs`, so that a difference between their
/// signatures does not compile.
const _: () = {
    use crate::clock::Clock;
    use crate::phase_order::Phase;
    use crate::site::Site;
    fn _parity(modes: &Modes, clock: &Clock) {
        let probe = Probe::new(Sinks::new(), modes, clock);
        let _: Span<'_> = probe.phase(Phase::Poll);
        let _: Span<'_> = probe.callback(Phase::Poll);
        let origin = Origin::default();
        let _: Running<'_> = probe.begin(modes, clock, Activity::Main, origin, &|| None);
        let here: Site = std::panic::Location::caller();
        let start: Option<u64> = probe.begin_poll(1);
        probe.end_poll(1, here, start.unwrap_or(0), clock);
        let recording: Option<Recording<'_>> = probe.recording(clock, Activity::Main, origin);
        if let Some(recording) = recording {
            recording.finish();
        }
        probe.record_wake(1);
        probe.spawned(&|| None);
        probe.ended(1);
        probe.armed(origin, clock);
        probe.note(Area::Loop, &String::new);
        probe.wake(1, &|| None);
        probe.write_trace();
        probe.begin_run(clock);
        probe.begin_turn(clock);
        probe.end_turn(clock, 1);
        probe.end_busy((0, 1), clock, &|_| Vec::new());
        probe.begin_wait();
        probe.end_wait(0, 1, 0);
        probe.end_period(&String::new);
        probe.begin_period();
        probe.rest();
        probe.answers(Box::new(|| false));
    }
};

#[cfg(all(test, feature = "probe"))]
#[path = "../tests/util/json.rs"]
mod json_reader;
