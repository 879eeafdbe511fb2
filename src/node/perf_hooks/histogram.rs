//! Histograms with three significant digits, as Node's.

use std::collections::BTreeMap;
use std::fmt;

use crate::node::error::Error;

/// The number of bits that distinguish two values: three digits need 2,048 steps.
const PRECISION: u32 = 11;

/// The smallest value of an empty histogram in Node.
const NO_MINIMUM: u64 = i64::MAX.unsigned_abs();

/// The largest value that can be recorded: the largest safe integer of JavaScript.
const LARGEST: u64 = (1 << 53) - 1;

/// A histogram of whole numbers, exact below 2,048 and with three digits above. JavaScript:
/// `createHistogram()`.
///
/// # Examples
///
/// ```
/// use phaseloop::node::perf_hooks::RecordableHistogram;
///
/// let mut sizes = RecordableHistogram::new();
/// for size in [5, 7, 100] {
///     sizes.record(size).unwrap();
/// }
/// assert_eq!((sizes.min(), sizes.max(), sizes.count()), (5, 100, 3));
/// assert_eq!(sizes.percentile(50.0), 7);
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct RecordableHistogram {
    /// The counts, by the lowest value of each step.
    counts: BTreeMap<u64, u64>,
    total: u64,
    exceeds: u64,
}

/// Returns the width of the step of a value.
fn width(value: u64) -> u64 {
    let bits = u64::BITS - value.leading_zeros();
    1 << bits.saturating_sub(PRECISION)
}

/// Returns the lowest value of the step of a value.
fn lowest(value: u64) -> u64 {
    value & !(width(value) - 1)
}

fn highest(value: u64) -> u64 {
    lowest(value) + (width(value) - 1)
}

fn median(value: u64) -> u64 {
    lowest(value) + (width(value) >> 1)
}

impl RecordableHistogram {
    /// Creates an empty histogram.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value. JavaScript: `histogram.record(value)`.
    ///
    /// # Errors
    ///
    /// `ERR_OUT_OF_RANGE` for zero, and for values above the safe integers of JavaScript.
    pub fn record(&mut self, value: u64) -> Result<(), Error> {
        if !(1..=LARGEST).contains(&value) {
            let text = format!(
                "The value of \"val\" is out of range. It must be >= 1 && <= {LARGEST}. Received {value}"
            );
            return Err(Error::range_error(text).coded("ERR_OUT_OF_RANGE"));
        }
        self.count_one(value);
        Ok(())
    }

    pub(super) fn count_one(&mut self, value: u64) {
        *self.counts.entry(lowest(value)).or_default() += 1;
        self.total += 1;
    }

    /// Adds the values of another histogram. JavaScript: `histogram.add(other)`.
    pub fn add(&mut self, other: &Self) {
        for (&value, &count) in &other.counts {
            *self.counts.entry(value).or_default() += count;
        }
        self.total += other.total;
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

    /// Returns how often the delay was above the largest value of one hour.
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
            .map_or(0, |&value| highest(value))
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
        counts.map(|(&value, &count)| (median(value) as f64, count as f64))
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
                return highest(value);
            }
        }
        0
    }

    /// Removes all values. JavaScript: `histogram.reset()`.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
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

    /// What Node 20 prints for the same values.
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
