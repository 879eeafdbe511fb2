//! Histograms with three significant digits, as Node's.

use std::collections::BTreeMap;
use std::fmt;

use super::performance::now;
use crate::error::Error;

/// The smallest value of an empty histogram in Node.
const NO_MINIMUM: u64 = i64::MAX.unsigned_abs();

/// The largest value that can be recorded: the largest safe integer of JavaScript.
const LARGEST: u64 = (1 << 53) - 1;

/// What a histogram can hold; see [`RecordableHistogram::with_options`]. JavaScript: `{ lowest,
/// highest, figures }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistogramOptions {
    /// The smallest value that can be distinguished from zero, at least 1.
    pub lowest: u64,
    /// The largest value, at least twice the smallest.
    pub highest: u64,
    /// The number of significant digits, from 1 to 5.
    pub figures: u32,
}

impl Default for HistogramOptions {
    fn default() -> Self {
        Self {
            lowest: 1,
            highest: LARGEST,
            figures: 3,
        }
    }
}

/// A histogram of whole numbers, exact below 2,048 and with three digits above. JavaScript:
/// `createHistogram()`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::perf_hooks::RecordableHistogram;
///
/// fn main() {
///     let mut sizes = RecordableHistogram::new();
///     for size in [5, 7, 100] {
///         sizes.record(size).unwrap();
///     }
///     assert_eq!((sizes.min(), sizes.max(), sizes.count()), (5, 100, 3));
///     assert_eq!(sizes.percentile(50.0), 7);
/// }
/// ```
#[derive(Clone, PartialEq)]
pub struct RecordableHistogram {
    steps: Steps,
    /// The counts, by the lowest value of each step.
    counts: BTreeMap<u64, u64>,
    total: u64,
    exceeds: u64,
    /// The time of the last [`record_delta`](Self::record_delta), in milliseconds.
    last: Option<f64>,
}

/// How values are rounded.
#[derive(Clone, Copy, PartialEq)]
struct Steps {
    /// The number of bits that distinguish two values: three digits need 2,048 steps.
    precision: u32,
    /// The number of bits of the narrowest step.
    unit: u32,
    /// The largest value that has a step.
    limit: u64,
}

impl Steps {
    fn new(options: HistogramOptions) -> Self {
        let single = 2 * 10_u64.pow(options.figures);
        let (precision, unit) = (single.next_power_of_two().ilog2(), options.lowest.ilog2());
        let mut beyond = 1_u64 << (precision + unit);
        while beyond <= options.highest {
            beyond <<= 1;
        }
        Self {
            precision,
            unit,
            limit: beyond - 1,
        }
    }

    /// Returns the width of the step of a value.
    fn width(self, value: u64) -> u64 {
        let bits = u64::BITS - value.leading_zeros();
        1 << bits.saturating_sub(self.precision).max(self.unit)
    }

    /// Returns the lowest value of the step of a value.
    fn lowest(self, value: u64) -> u64 {
        value & !(self.width(value) - 1)
    }

    fn highest(self, value: u64) -> u64 {
        self.lowest(value) + (self.width(value) - 1)
    }

    fn median(self, value: u64) -> u64 {
        self.lowest(value) + (self.width(value) >> 1)
    }
}

impl Default for RecordableHistogram {
    fn default() -> Self {
        Self::of(Steps::new(HistogramOptions::default()))
    }
}

impl RecordableHistogram {
    /// Creates an empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty histogram for other values, or with other digits. JavaScript:
    /// `createHistogram({ lowest, highest, figures })`.
    ///
    /// Values up to the next power of two above `highest` are recorded, too. Larger ones are
    /// counted by [`exceeds`](Self::exceeds) only.
    ///
    /// # Errors
    ///
    /// `ERR_OUT_OF_RANGE` if an option is not within its limits.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::perf_hooks::{HistogramOptions, RecordableHistogram};
    ///
    /// fn main() {
    ///     let options = HistogramOptions {
    ///         figures: 1,
    ///         ..HistogramOptions::default()
    ///     };
    ///     let mut sizes = RecordableHistogram::with_options(options).unwrap();
    ///     sizes.record(1000).unwrap();
    ///     assert_eq!((sizes.min(), sizes.max()), (992, 1023));
    /// }
    /// ```
    pub fn with_options(options: HistogramOptions) -> Result<Self, Error> {
        let HistogramOptions {
            lowest,
            highest,
            figures,
        } = options;
        check("options.lowest", lowest, 1, LARGEST)?;
        check(
            "options.highest",
            highest,
            lowest.saturating_mul(2),
            LARGEST,
        )?;
        check("options.figures", figures.into(), 1, 5)?;
        Ok(Self::of(Steps::new(options)))
    }

    fn of(steps: Steps) -> Self {
        Self {
            steps,
            counts: BTreeMap::new(),
            total: 0,
            exceeds: 0,
            last: None,
        }
    }

    /// Adds a value. JavaScript: `histogram.record(value)`.
    ///
    /// # Errors
    ///
    /// `ERR_OUT_OF_RANGE` for zero, and for values above the safe integers of JavaScript.
    pub fn record(&mut self, value: u64) -> Result<(), Error> {
        check("val", value, 1, LARGEST)?;
        self.count_one(value);
        Ok(())
    }

    /// Adds the time since the last call of this function, in nanoseconds. The first call adds
    /// nothing. JavaScript: `histogram.recordDelta()`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[allow(
        clippy::cast_sign_loss,
        clippy::cast_possible_truncation,
        reason = "a time since an earlier one"
    )]
    pub fn record_delta(&mut self) {
        let now = now();
        if let Some(last) = self.last.replace(now) {
            let delta = ((now - last) * 1e6).round() as u64;
            self.count_one(delta);
        }
    }

    pub(super) fn count_one(&mut self, value: u64) {
        if value > self.steps.limit {
            return self.add_exceeding();
        }
        *self.counts.entry(self.steps.lowest(value)).or_default() += 1;
        self.total += 1;
    }

    /// Adds the values of another histogram. JavaScript: `histogram.add(other)`.
    pub fn add(&mut self, other: &Self) {
        for (&value, &count) in &other.counts {
            // hdr_add takes the middle of a step.
            let value = other.steps.median(value);
            if value <= self.steps.limit {
                *self.counts.entry(self.steps.lowest(value)).or_default() += count;
                self.total += count;
            }
        }
        self.exceeds += other.exceeds;
    }

    /// Counts a value that is too large to be recorded.
    pub(super) fn add_exceeding(&mut self) {
        self.exceeds += 1;
    }

    /// Returns the number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.total
    }

    /// Returns how many values were too large to be recorded. The largest delay of the loop is one
    /// hour.
    #[must_use]
    pub fn exceeds(&self) -> u64 {
        self.exceeds
    }

    /// Returns the smallest value; that of an empty histogram is Node's 9,223,372,036,854,775,807.
    #[must_use]
    pub fn min(&self) -> u64 {
        self.counts.keys().next().copied().unwrap_or(NO_MINIMUM)
    }

    /// Returns the largest value, or zero.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.counts
            .keys()
            .next_back()
            .map_or(0, |&value| self.steps.highest(value))
    }

    /// Returns the mean, which is not a number if there are no values.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "as JavaScript numbers")]
    pub fn mean(&self) -> f64 {
        let sum: f64 = self.values().map(|(value, count)| value * count).sum();
        sum / self.total as f64
    }

    /// Returns the standard deviation, which is not a number if there are no values.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "as JavaScript numbers")]
    pub fn stddev(&self) -> f64 {
        let mean = self.mean();
        let squares = self
            .values()
            .map(|(value, count)| (value - mean).powi(2) * count);
        (squares.sum::<f64>() / self.total as f64).sqrt()
    }

    #[allow(clippy::cast_precision_loss, reason = "as JavaScript numbers")]
    fn values(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let counts = self.counts.iter();
        counts.map(|(&value, &count)| (self.steps.median(value) as f64, count as f64))
    }

    /// Returns the value below which `percent` of the values are; zero if there are none.
    ///
    /// # Panics
    ///
    /// If `percent` is not above 0 and at most 100.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        clippy::cast_possible_truncation,
        reason = "as JavaScript numbers"
    )]
    pub fn percentile(&self, percent: f64) -> u64 {
        assert!(
            percent > 0.0 && percent <= 100.0,
            "a percentile is above 0 and at most 100, not {percent}"
        );
        let wanted = (percent / 100.0 * self.total as f64 + 0.5) as u64;
        let mut seen = 0;
        for (&value, &count) in &self.counts {
            seen += count;
            if seen >= wanted.max(1) {
                return self.steps.highest(value);
            }
        }
        0
    }

    /// Returns the values at 0, 50, 75, 87.5 percent and so on, each half way to 100, which is the
    /// last. JavaScript: `histogram.percentiles`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::perf_hooks::RecordableHistogram;
    ///
    /// fn main() {
    ///     let mut sizes = RecordableHistogram::new();
    ///     sizes.record(5).unwrap();
    ///     sizes.record(7).unwrap();
    ///     assert_eq!(sizes.percentiles(), [(0.0, 5), (50.0, 5), (75.0, 7), (100.0, 7)]);
    /// }
    /// ```
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "as JavaScript numbers")]
    pub fn percentiles(&self) -> Vec<(f64, u64)> {
        let mut found = Vec::new();
        let (mut wanted, mut seen) = (0.0, 0);
        for (&value, &count) in &self.counts {
            seen += count;
            let here = 100.0 * seen as f64 / self.total as f64;
            while wanted <= here {
                found.push((wanted, value));
                let halves = (100.0_f64 / (100.0 - wanted)).log2().floor() + 1.0;
                wanted += 100.0 / halves.exp2();
                // The last value is printed once more, as the value of 100 percent.
                if seen == self.total {
                    break;
                }
            }
        }
        let last = self.counts.keys().next_back();
        found.push((100.0, last.copied().unwrap_or(0)));
        found
    }

    /// Removes all values. JavaScript: `histogram.reset()`.
    pub fn reset(&mut self) {
        *self = Self::of(self.steps);
    }
}

/// Checks that a number is within its limits.
fn check(name: &str, value: u64, least: u64, most: u64) -> Result<(), Error> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let text = format!(
        "The value of \"{name}\" is out of range. It must be >= {least} && <= {most}. Received {value}"
    );
    Err(Error::range_error(text).coded("ERR_OUT_OF_RANGE"))
}

impl fmt::Debug for RecordableHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordableHistogram")
            .field("min", &self.min())
            .field("max", &self.max())
            .field("mean", &self.mean())
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::RecordableHistogram;

    /// What Node prints for the same values.
    #[test]
    fn figures_are_those_of_node() {
        let mut histogram = RecordableHistogram::new();
        assert_eq!((histogram.min(), histogram.max()), (i64::MAX as u64, 0));
        assert!(histogram.mean().is_nan() && histogram.percentile(50.0) == 0);
        for value in [5, 7, 100] {
            histogram.record(value).unwrap();
        }
        assert!((histogram.mean() - 37.333_333_333_333_336).abs() < 1e-12);
        assert!((histogram.stddev() - 44.319_546_728_528_51).abs() < 1e-12);
        assert_eq!(
            (histogram.percentile(50.0), histogram.percentile(100.0)),
            (7, 100)
        );
        assert_eq!(
            histogram.record(0).unwrap_err().code(),
            Some("ERR_OUT_OF_RANGE")
        );
        let mut twice = histogram.clone();
        twice.add(&histogram);
        assert_eq!((twice.count(), twice.max()), (6, 100));
        histogram.reset();
        // `h.record(123456789)`: min 123404288, max 123469823.
        histogram.record(123_456_789).unwrap();
        assert_eq!(
            (histogram.min(), histogram.max()),
            (123_404_288, 123_469_823)
        );
    }
}
