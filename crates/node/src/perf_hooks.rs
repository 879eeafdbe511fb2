//! Node's `perf_hooks`: marks and measures, the utilization and the delay of the loop.
//!
//! ```
//! use phaseloop_node::perf_hooks::performance;
//! use phaseloop_node::{Exit, run};
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         performance::mark("begin");
//!         // ...
//!         performance::mark("end");
//!         let entry = performance::measure("work", ("begin", "end")).unwrap();
//!         assert!(entry.duration >= 0.0);
//!     })
//! }
//! ```
//!
//! | Node | here |
//! |---|---|
//! | `performance.now()`, `timeOrigin` | [`performance::now`], [`performance::time_origin`] |
//! | `performance.mark`, `measure` | [`performance::mark`], [`performance::measure`] |
//! | `performance.getEntries()`, `…ByName()`, `…ByType()` | [`performance::get_entries`] … |
//! | `performance.clearMarks()`, `…Measures()` | [`performance::clear_marks`] and the others |
//! | `performance.timerify(f)` | [`performance::timerify`] and the others |
//! | `performance.eventLoopUtilization()` | [`performance::event_loop_utilization`] |
//! | `performance.nodeTiming.uvMetricsInfo` | [`performance::uv_metrics_info`] |
//! | `new PerformanceObserver(f)` | [`PerformanceObserver`] |
//! | `createHistogram()` | [`RecordableHistogram::new`], [`RecordableHistogram::with_options`] |
//! | `monitorEventLoopDelay({ resolution })` | [`monitor_event_loop_delay`] |
//!
//! Times are milliseconds as `f64`, as in Node. They are read from the clock of the loop, so a test
//! on the paused clock sees its time.
//!
//! In plain Rust: [`LoopHandle::metrics`](phaseloop::LoopHandle::metrics).

mod delay;
mod histogram;
mod observer;
pub mod performance;
mod timerify;

pub use self::delay::{IntervalHistogram, monitor_event_loop_delay};
pub use self::histogram::{HistogramOptions, RecordableHistogram};
pub(super) use self::observer::Observers;
pub use self::observer::{PerformanceObserver, PerformanceObserverEntryList};
pub(super) use self::performance::Timeline;
pub use self::performance::{
    Detail, EntryType, EventLoopUtilization, PerformanceEntry, UvMetricsInfo,
};

use phaseloop::extension::Loop;

const NANOSECONDS_PER_MILLISECOND: f64 = 1e6;

/// Returns the time of a loop in milliseconds.
#[allow(clippy::cast_precision_loss, reason = "as JavaScript numbers")]
fn milliseconds(core: &Loop) -> f64 {
    core.read_clock() as f64 / NANOSECONDS_PER_MILLISECOND
}
