//! Observation of the loop. [`Observer`] is the wall: the loop reports its events to a list of
//! observers, and knows none of them.
//!
//! `switch.rs` holds the list, and the word that the loop tests. Both are always compiled. The
//! feature `probe` adds observers, each in a file of its own: the recorder with its writers, the
//! watchdog, the debug log, the timeline of `PHASELOOP_TRACE`, and with the feature `tracing` the
//! sink for that crate.

mod area;
mod attachments;
#[cfg(feature = "probe")]
mod blame;
#[cfg(feature = "probe")]
mod built_in;
#[cfg(feature = "probe")]
mod chrome;
#[cfg(feature = "probe")]
mod debug_log;
#[cfg(feature = "probe")]
mod environment;
#[cfg(feature = "probe")]
mod html;
#[cfg(feature = "cluster")]
pub(crate) mod joint;
#[cfg(feature = "probe")]
mod json;
mod observer;
#[cfg(any(feature = "probe", feature = "signal"))]
mod of_loop;
mod origin;
#[cfg(feature = "probe")]
mod record;
#[cfg(feature = "probe")]
mod recorder;
#[cfg(feature = "probe")]
mod ring;
mod sited;
mod switch;
#[cfg(feature = "probe")]
mod trace;
#[cfg(feature = "probe")]
mod trace_file;
#[cfg(feature = "tracing")]
mod traced;
#[cfg(not(feature = "probe"))]
mod warning;
#[cfg(feature = "probe")]
mod watchdog;

pub use area::Area;
pub(crate) use attachments::Attachments;
#[cfg(feature = "probe")]
pub use blame::{Blame, Culprit, SlowPeriod, Suspect};
#[cfg(feature = "cluster")]
pub(crate) use joint::JointTrace;
pub use observer::{Activity, Body, BusyPeriod, Flush, Observer, Waited, Wake, Wants};
#[cfg(feature = "signal")]
pub(crate) use of_loop::OfLoop;
pub use origin::Origin;
#[cfg(feature = "probe")]
pub use record::{Record, Subject, What};
#[cfg(feature = "probe")]
pub use recorder::Recorder;
pub(crate) use sited::SitedCall;
pub(crate) use switch::{Mode, Probe};
#[cfg(feature = "probe")]
pub use watchdog::{Stall, Watchdog};

#[cfg(all(test, feature = "probe"))]
#[path = "../tests/util/json.rs"]
mod json_reader;
