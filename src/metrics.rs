//! The figures of a loop: what it did, how long it waited, and how late it was.

mod several;

use std::fmt::{self, Write as _};
use std::time::Duration;

use crate::histogram::Histogram;
use crate::phase_order::Phase;

/// The upper bounds of the histograms in [`Metrics::to_prometheus`], in microseconds.
// Twelve: every bound is one more time series that the user pays for.
const BOUNDS: [u64; 12] = [
    50, 100, 250, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 250_000, 1_000_000, 2_500_000,
];

/// The quantiles of the delay in [`Metrics::to_prometheus`].
const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];

/// The figures of a loop since it was created, or between two moments.
///
/// [`LoopHandle::metrics`](crate::LoopHandle::metrics) returns them; they are always counted.
/// [`since`](Self::since) subtracts an earlier copy. On a paused clock all times are in the time of
/// that clock.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::{LoopHandle, time::sleep};
///
/// #[phaseloop::main]
/// async fn main() {
///     let before = LoopHandle::current().metrics();
///     sleep(Duration::from_millis(20)).await;
///     let metrics = LoopHandle::current().metrics().since(&before);
///     assert!(metrics.idle >= Duration::from_millis(15), "the loop waited: {metrics:?}");
///     assert!(metrics.utilization() < 0.5);
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Metrics {
    /// Turns of the loop.
    pub turns: u64,
    /// Calls of `epoll_pwait` or its counterpart.
    pub kernel_polls: u64,
    /// Events that the kernel reported.
    pub events: u64,
    /// Events that were ready when the loop asked without waiting.
    pub events_waiting: u64,
    /// Callbacks by phase, in the order of [`Phase`].
    pub callbacks: [u64; 7],
    /// Polls of tasks.
    pub polls: u64,
    /// Ticks and microtask closures that ran.
    pub closures: u64,
    /// Wakes and calls that came from other threads.
    pub remote_wakes: u64,
    /// Tasks that were spawned.
    pub spawned: u64,
    /// Tasks that are not complete at this moment.
    pub tasks: usize,
    /// Drains that ended because the lane budget was used up.
    pub budget_hits: u64,
    /// Time inside waits for events.
    pub idle: Duration,
    /// Time of runs that was not idle. The time between two runs is in neither.
    pub active: Duration,
    /// The periods between two kernel polls. What becomes ready during a busy period is noticed at
    /// its end at the earliest.
    pub busy_periods: Histogram,
    /// For each timer and sleep that fired, the time between its deadline and the beginning of the
    /// timers phase that fired it.
    pub lateness: Histogram,
}

impl Metrics {
    /// Returns the figures of the time between `earlier` and this copy. [`tasks`](Self::tasks)
    /// stays as it is.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{LoopHandle, time::sleep};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let handle = LoopHandle::current();
    ///     let before = handle.metrics();
    ///     sleep(Duration::from_millis(5)).await;
    ///     let passed = handle.metrics().since(&before);
    ///     assert!(passed.utilization() <= 1.0);
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut callbacks = self.callbacks;
        for (count, before) in callbacks.iter_mut().zip(earlier.callbacks) {
            *count = count.saturating_sub(before);
        }
        Self {
            turns: self.turns.saturating_sub(earlier.turns),
            kernel_polls: self.kernel_polls.saturating_sub(earlier.kernel_polls),
            events: self.events.saturating_sub(earlier.events),
            events_waiting: self.events_waiting.saturating_sub(earlier.events_waiting),
            callbacks,
            polls: self.polls.saturating_sub(earlier.polls),
            closures: self.closures.saturating_sub(earlier.closures),
            remote_wakes: self.remote_wakes.saturating_sub(earlier.remote_wakes),
            spawned: self.spawned.saturating_sub(earlier.spawned),
            tasks: self.tasks,
            budget_hits: self.budget_hits.saturating_sub(earlier.budget_hits),
            idle: self.idle.saturating_sub(earlier.idle),
            active: self.active.saturating_sub(earlier.active),
            busy_periods: self.busy_periods.since(&earlier.busy_periods),
            lateness: self.lateness.since(&earlier.lateness),
        }
    }

    /// Returns the figures that a report has, in one line.
    #[cfg(feature = "signal")]
    #[inline]
    pub(crate) fn summary(&self) -> String {
        let delay = self.delay();
        format!(
            "What it does: utilization {:.1} % of {:.1?}, {} turns, {} polls of tasks, delay {:.1?} at most, below \
             {:.1?} for 99 % of the time.\n",
            self.utilization() * 100.0,
            self.active + self.idle,
            self.turns,
            self.polls,
            delay.max(),
            delay.quantile(0.99),
        )
    }

    /// Returns the share of the time that the loop was active, between 0 and 1; 0 before the first
    /// run.
    #[must_use]
    #[inline]
    pub fn utilization(&self) -> f64 {
        Utilization {
            active: self.active,
            idle: self.idle,
        }
        .share()
    }

    /// Returns the delay of the loop: how long an event waits that becomes ready at a random
    /// moment.
    ///
    /// The delay is computed from the busy periods, not sampled, so that no blocked moment is
    /// missed.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{thread, time::Duration};
    /// use phaseloop::{LoopHandle, time::sleep};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     sleep(Duration::from_millis(50)).await;
    ///     thread::sleep(Duration::from_millis(50)); // blocks the loop half of the time
    ///     sleep(Duration::from_millis(1)).await;
    ///     let metrics = LoopHandle::current().metrics();
    ///     assert!(metrics.delay().quantile(0.9) > Duration::from_millis(25));
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn delay(&self) -> Delay<'_> {
        Delay { metrics: self }
    }

    /// Returns the figures in the text format of Prometheus (version 0.0.4). `labels` are added to
    /// every line.
    ///
    /// # Examples
    ///
    /// ```
    /// fn main() -> Result<(), std::io::Error> {
    ///     let event_loop = phaseloop::EventLoop::new()?;
    ///     let text = event_loop.handle().metrics().to_prometheus(&[("loop", "main")]);
    ///     assert!(text.contains("phaseloop_turns_total{loop=\"main\"} 0\n"));
    ///     Ok(())
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn to_prometheus(&self, labels: &[(&str, &str)]) -> String {
        let mut page = Page::new(labels);
        page.counter("turns", "Turns of the loop.", self.turns);
        page.counter(
            "kernel_polls",
            "Calls that ask the kernel for events.",
            self.kernel_polls,
        );
        page.counter("events", "Events of the kernel.", self.events);
        page.counter("polls", "Polls of tasks.", self.polls);
        page.counter(
            "closures",
            "Ticks and microtask closures that ran.",
            self.closures,
        );
        page.counter(
            "remote_wakes",
            "Wakes and calls from other threads.",
            self.remote_wakes,
        );
        page.counter("spawned", "Tasks that were spawned.", self.spawned);
        page.counter(
            "budget_hits",
            "Drains that used up the lane budget.",
            self.budget_hits,
        );
        page.head("callbacks_total", "counter", "Callbacks by phase.");
        for (phase, count) in Phase::ALL.iter().zip(self.callbacks) {
            page.line("callbacks_total", &[("phase", &phase.to_string())], count);
        }
        page.seconds_counter("idle", "Time inside waits for events.", self.idle);
        page.seconds_counter("active", "Time of runs that was not idle.", self.active);
        page.head("tasks", "gauge", "Tasks that are not complete.");
        page.line("tasks", &[], self.tasks);
        page.histogram(
            "busy_period_seconds",
            "Periods between two kernel polls.",
            &self.busy_periods,
        );
        page.histogram(
            "timer_lateness_seconds",
            "Time between the deadline of a timer and its pass.",
            &self.lateness,
        );
        page.head(
            "delay_seconds",
            "gauge",
            "Wait of an event that becomes ready at a random moment.",
        );
        for q in QUANTILES {
            let delay = self.delay().quantile(q).as_secs_f64();
            page.line("delay_seconds", &[("quantile", &q.to_string())], delay);
        }
        page.text
    }
}

/// The delay of a loop: how long an event waits that becomes ready at a random moment; see
/// [`Metrics::delay`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::{LoopHandle, time::sleep};
///
/// #[phaseloop::main]
/// async fn main() {
///     sleep(Duration::from_millis(5)).await;
///     let metrics = LoopHandle::current().metrics();
///     let delay = metrics.delay();
///     println!("p99 {:?}, max {:?}", delay.quantile(0.99), delay.max());
///     assert!(delay.share_above(Duration::from_secs(60)) < 1.0);
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Delay<'a> {
    metrics: &'a Metrics,
}

impl Delay<'_> {
    /// Returns the delay that the share `q` of all moments does not exceed. `q` is clamped to 0–1.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::{LoopHandle, time::sleep};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     sleep(Duration::from_millis(5)).await;
    ///     let metrics = LoopHandle::current().metrics();
    ///     let delay = metrics.delay();
    ///     println!("p99 {:?}, max {:?}", delay.quantile(0.99), delay.max());
    ///     assert!(delay.share_above(Duration::from_secs(60)) < 1.0);
    /// }
    /// ```
    #[must_use]
    #[inline]
    pub fn quantile(&self, q: f64) -> Duration {
        let whole = self.metrics.active + self.metrics.idle;
        self.metrics.busy_periods.delay_quantile(q, whole)
    }

    /// Returns the share of all moments whose delay is longer than `limit`.
    #[must_use]
    #[inline]
    pub fn share_above(&self, limit: Duration) -> f64 {
        let limit = limit.as_secs_f64();
        #[allow(clippy::cast_precision_loss, reason = "an estimate")]
        let above: f64 = self
            .metrics
            .busy_periods
            .iter()
            .map(|(period, times)| (period.as_secs_f64() - limit).max(0.0) * times as f64)
            .sum();
        let whole = (self.metrics.active + self.metrics.idle).as_secs_f64();
        if whole > 0.0 {
            (above / whole).min(1.0)
        } else {
            0.0
        }
    }

    /// Returns the longest busy period, which is the longest possible delay.
    #[must_use]
    #[inline]
    pub fn max(&self) -> Duration {
        self.metrics.busy_periods.max()
    }
}

impl fmt::Debug for Delay<'_> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Delay")
            .field("p50", &self.quantile(0.5))
            .field("p90", &self.quantile(0.9))
            .field("p99", &self.quantile(0.99))
            .field("max", &self.max())
            .finish()
    }
}

/// How long a loop was active and how long it waited; see
/// [`Remote::utilization`](crate::Remote::utilization).
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::{LoopHandle, time::sleep};
///
/// #[phaseloop::main]
/// async fn main() {
///     let remote = LoopHandle::current().remote();
///     let before = remote.utilization();
///     sleep(Duration::from_millis(5)).await;
///     let passed = remote.utilization().since(&before);
///     println!("busy for {:.1} %", passed.share() * 100.0);
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Utilization {
    /// Time of runs that was not idle.
    pub active: Duration,
    /// Time inside waits for events.
    pub idle: Duration,
}

impl Utilization {
    /// Returns the share of the time that the loop was active, between 0 and 1; 0 before the first
    /// run.
    #[must_use]
    #[inline]
    pub fn share(&self) -> f64 {
        let whole = (self.active + self.idle).as_secs_f64();
        if whole > 0.0 {
            self.active.as_secs_f64() / whole
        } else {
            0.0
        }
    }

    /// Returns the times between `earlier` and this copy.
    #[must_use]
    #[inline]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            active: self.active.saturating_sub(earlier.active),
            idle: self.idle.saturating_sub(earlier.idle),
        }
    }
}

/// A page in the text format of Prometheus.
struct Page {
    text: String,
    /// The labels of the user, as text: `loop="main"`.
    labels: String,
}

impl Page {
    #[inline]
    fn new(labels: &[(&str, &str)]) -> Self {
        Self {
            text: String::new(),
            labels: label_list(labels),
        }
    }

    #[inline]
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP phaseloop_{name} {help}");
        let _ = writeln!(self.text, "# TYPE phaseloop_{name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl fmt::Display) {
        let own = label_list(labels);
        let comma = if own.is_empty() || self.labels.is_empty() {
            ""
        } else {
            ","
        };
        let all = format!("{}{comma}{own}", self.labels);
        let _ = match all.as_str() {
            "" => writeln!(self.text, "phaseloop_{name} {value}"),
            all => writeln!(self.text, "phaseloop_{name}{{{all}}} {value}"),
        };
    }

    #[inline]
    fn counter(&mut self, name: &str, help: &str, value: u64) {
        let name = format!("{name}_total");
        self.head(&name, "counter", help);
        self.line(&name, &[], value);
    }

    #[inline]
    fn seconds_counter(&mut self, name: &str, help: &str, value: Duration) {
        let name = format!("{name}_seconds_total");
        self.head(&name, "counter", help);
        self.line(&name, &[], value.as_secs_f64());
    }

    #[inline]
    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        for micros in BOUNDS {
            let bound = Duration::from_micros(micros);
            let label = bound.as_secs_f64().to_string();
            self.line(&bucket, &[("le", &label)], histogram.count_within(bound));
        }
        self.line(&bucket, &[("le", "+Inf")], histogram.count());
        self.line(&format!("{name}_sum"), &[], histogram.sum().as_secs_f64());
        self.line(&format!("{name}_count"), &[], histogram.count());
    }
}

/// Writes labels as `a="1",b="2"`, with the escapes of the format.
#[inline]
fn label_list(labels: &[(&str, &str)]) -> String {
    let one = |(name, value): &(&str, &str)| {
        let value = value
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        format!("{name}=\"{value}\"")
    };
    labels.iter().map(one).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::Metrics;
    use crate::histogram::Histogram;
    use std::time::Duration;

    const MS: Duration = Duration::from_millis(1);

    fn metrics(busy: &[Duration], idle: Duration) -> Metrics {
        let mut busy_periods = Histogram::new();
        busy.iter().for_each(|&period| busy_periods.record(period));
        Metrics {
            turns: 0,
            kernel_polls: 0,
            events: 0,
            events_waiting: 0,
            callbacks: [0; 7],
            polls: 0,
            closures: 0,
            remote_wakes: 0,
            spawned: 0,
            tasks: 0,
            budget_hits: 0,
            idle,
            active: busy.iter().sum(),
            busy_periods,
            lateness: Histogram::new(),
        }
    }

    #[test]
    fn the_delay_is_that_of_a_random_moment() {
        let half = metrics(&[1_000 * MS], 1_000 * MS);
        let seconds = |q| half.delay().quantile(q).as_secs_f64();
        assert_eq!(seconds(0.4), 0.0);
        assert!((seconds(0.75) - 0.5).abs() < 0.02, "{}", seconds(0.75));
        assert!((seconds(0.99) - 0.98).abs() < 0.04, "{}", seconds(0.99));
        assert!((half.delay().share_above(500 * MS) - 0.25).abs() < 0.01);
        assert_eq!(half.delay().max(), 1_000 * MS);
        assert!((half.utilization() - 0.5).abs() < 1e-9);
    }

    /// A generator of pseudo-random numbers: the tests need no good one.
    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    #[test]
    fn the_delay_agrees_with_ten_thousand_random_moments() {
        let mut state = 0x9E37_79B9_7F4A_7C15;
        for _ in 0..20 {
            let busy: Vec<_> = (0..50)
                .map(|_| Duration::from_nanos(random(&mut state) % 50_000_000 + 1_000))
                .collect();
            let idle = Duration::from_nanos(random(&mut state) % 1_000_000_000);
            let found = metrics(&busy, idle);
            let whole: Duration = busy.iter().sum::<Duration>() + idle;
            let mut delays: Vec<_> = (0..10_000)
                .map(|_| {
                    let mut moment =
                        Duration::from_nanos(random(&mut state) % whole.as_nanos() as u64);
                    for &period in &busy {
                        if moment < period {
                            return (period - moment).as_secs_f64();
                        }
                        moment -= period;
                    }
                    0.0
                })
                .collect();
            delays.sort_by(f64::total_cmp);
            for q in [0.5, 0.9, 0.99] {
                let sampled = delays[(q * 10_000.0) as usize];
                let computed = found.delay().quantile(q).as_secs_f64();
                assert!(
                    (sampled - computed).abs() < 0.002,
                    "{q}: {sampled} {computed}"
                );
            }
        }
    }

    #[test]
    fn an_idle_loop_has_no_delay() {
        let idle = metrics(&[], 10 * MS);
        assert_eq!(idle.delay().quantile(1.0), Duration::ZERO);
        assert_eq!(idle.delay().share_above(Duration::ZERO), 0.0);
        assert_eq!(metrics(&[], Duration::ZERO).utilization(), 0.0);
    }

    #[test]
    fn prometheus_gets_seconds_labels_and_cumulative_buckets() {
        let found = metrics(&[MS, 20 * MS], 1_000 * MS);
        let text = found.to_prometheus(&[("loop", "a\"b\\c\nd")]);
        for line in [
            "# TYPE phaseloop_busy_period_seconds histogram",
            r#"phaseloop_busy_period_seconds_bucket{loop="a\"b\\c\nd",le="0.0025"} 1"#,
            r#"phaseloop_busy_period_seconds_bucket{loop="a\"b\\c\nd",le="+Inf"} 2"#,
            r#"phaseloop_busy_period_seconds_sum{loop="a\"b\\c\nd"} 0.021"#,
            r#"phaseloop_idle_seconds_total{loop="a\"b\\c\nd"} 1"#,
            r#"phaseloop_callbacks_total{loop="a\"b\\c\nd",phase="timers"} 0"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(
            metrics(&[], MS)
                .to_prometheus(&[])
                .contains("\nphaseloop_tasks 0\n")
        );
    }
}
