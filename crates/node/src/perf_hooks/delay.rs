//! The delay of the loop as Node samples it.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use super::histogram::RecordableHistogram;
use phaseloop::Handle as _;
use phaseloop::LoopHandle;
use phaseloop::extension::Loop;
use phaseloop::extension::frame::without_context;
use phaseloop::time::Timer;

/// The largest delay that is recorded.
const HOUR: u64 = 3_600_000_000_000;

/// Creates a monitor that samples the delay of the loop by a timer, which fires every `resolution`
/// milliseconds. JavaScript: `monitorEventLoopDelay({ resolution })`.
///
/// A sample is the time between two firings, in nanoseconds. It includes the resolution, and a
/// block of the loop is one sample, however long it is: a loop that is blocked for one second of
/// two shows a small 99th percentile. [`Metrics::delay`](phaseloop::observe::Metrics::delay) needs
/// no timer and has neither fault.
///
/// # Panics
///
/// When no loop runs on this thread, and if the resolution is zero.
///
/// # Examples
///
/// ```
/// use phaseloop_node::perf_hooks::monitor_event_loop_delay;
/// use phaseloop_node::{Exit, run, set_timeout};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let delay = monitor_event_loop_delay(1);
///         delay.enable();
///         set_timeout(20, move || {
///             delay.disable();
///             assert!(delay.histogram().min() >= 900_000);
///         });
///     })
/// }
/// ```
#[must_use]
#[track_caller]
pub fn monitor_event_loop_delay(resolution: u64) -> IntervalHistogram {
    assert!(resolution > 0, "the resolution is at least a millisecond");
    IntervalHistogram {
        resolution,
        timer: without_context(|| Timer::new(&LoopHandle::current())),
        samples: Rc::default(),
        is_enabled: Cell::new(false),
    }
}

/// A monitor of the delay of the loop; see [`monitor_event_loop_delay`]. It does not keep the loop
/// alive. Dropping it ends it.
pub struct IntervalHistogram {
    resolution: u64,
    timer: Timer,
    samples: Rc<Samples>,
    is_enabled: Cell<bool>,
}

#[derive(Default)]
struct Samples {
    histogram: RefCell<RecordableHistogram>,
    /// The time of the last firing.
    last: Cell<Option<u64>>,
}

impl IntervalHistogram {
    /// Begins to sample. Returns whether that is a change. JavaScript: `histogram.enable()`.
    pub fn enable(&self) -> bool {
        if self.is_enabled.get() {
            return false;
        }
        let (samples, every) = (self.samples.clone(), Duration::from_millis(self.resolution));
        let started = without_context(|| {
            self.timer.start(every, every, move |_| {
                let now = Loop::current().map(|core| core.read_clock());
                if let Some(now) = now {
                    samples.sample(now);
                }
            })
        });
        if started.is_err() {
            return false;
        }
        self.timer.unref();
        self.is_enabled.set(true);
        true
    }

    /// Ends sampling. Returns whether that is a change. JavaScript: `histogram.disable()`.
    pub fn disable(&self) -> bool {
        if !self.is_enabled.replace(false) {
            return false;
        }
        self.timer.stop();
        self.samples.last.set(None);
        true
    }

    /// Returns the samples so far, in nanoseconds.
    #[must_use]
    pub fn histogram(&self) -> RecordableHistogram {
        self.samples.histogram.borrow().clone()
    }

    /// Removes all samples. JavaScript: `histogram.reset()`.
    pub fn reset(&self) {
        self.samples.histogram.borrow_mut().reset();
    }
}

impl Samples {
    fn sample(&self, now: u64) {
        let last = self.last.replace(Some(now));
        let Some(delta) = last.map(|last| now.saturating_sub(last)) else {
            return;
        };
        let mut histogram = self.histogram.borrow_mut();
        match delta {
            0 => {}
            1..=HOUR => histogram.count_one(delta),
            _ => histogram.add_exceeding(),
        }
    }
}

impl fmt::Debug for IntervalHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntervalHistogram")
            .field("resolution", &self.resolution)
            .field("is_enabled", &self.is_enabled.get())
            .field("histogram", &self.samples.histogram.borrow())
            .finish_non_exhaustive()
    }
}
