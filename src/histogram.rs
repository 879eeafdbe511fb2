//! A histogram of durations with a fixed size and a bounded error.
//!
//! The buckets are log-linear: 32 buckets of 32 ns each, then 32 buckets for each power of two up
//! to 68 s. A record costs an index computation and three additions; it never allocates.
// Marks: each wait records a duration (row `tcp_echo/1x64`); a new group of buckets is `cold`.

use std::cell::{Cell, OnceCell};
use std::fmt;
use std::time::Duration;

/// The width of the narrowest buckets: 2⁵ ns.
const UNIT_BITS: u32 = 5;

/// 2⁵ buckets for each power of two.
const STEP_BITS: u32 = 5;

const STEPS: usize = 1 << STEP_BITS;

/// Values of 2³⁶ ns (68 s) and more share the last bucket.
const LARGEST_BITS: u32 = 36;

/// One group of buckets below 2¹⁰ ns, and one for each power of two above.
const GROUPS: usize = (LARGEST_BITS - UNIT_BITS - STEP_BITS + 1) as usize;

const BUCKETS: usize = STEPS * GROUPS;

/// A histogram of durations, from 32 ns to 68 s, with an error of at most 3.2 %.
///
/// [`sum`](Self::sum) and [`max`](Self::max) are exact. A longer duration than 68 s counts in the
/// last bucket. [`Metrics`](crate::observe::Metrics) has two histograms of a loop.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::observe::Histogram;
///
/// fn main() {
///     let mut histogram = Histogram::new();
///     for millis in 1..=100 {
///         histogram.record(Duration::from_millis(millis));
///     }
///     assert_eq!(histogram.count(), 100);
///     assert_eq!(histogram.max(), Duration::from_millis(100));
///     let median = histogram.quantile(0.5).as_secs_f64();
///     assert!((median / 0.050 - 1.0).abs() < 0.032, "{median}");
/// }
/// ```
#[derive(Clone)]
pub struct Histogram {
    /// Empty until the first record.
    buckets: Box<[u64]>,
    sum: u64,
    max: u64,
}

impl Histogram {
    /// Creates an empty histogram. It takes 7 KiB from its first record on.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::observe::Histogram;
    ///
    /// fn main() {
    ///     let mut histogram = Histogram::new();
    ///     assert!(histogram.is_empty());
    ///     for milliseconds in [1, 2, 3] {
    ///         histogram.record(Duration::from_millis(milliseconds));
    ///     }
    ///     assert_eq!((histogram.count(), histogram.sum()), (3, Duration::from_millis(6)));
    ///     assert_eq!(histogram.mean(), Duration::from_millis(2));
    ///     assert!(histogram.min() <= Duration::from_millis(1));
    ///     assert_eq!(histogram.max(), Duration::from_millis(3));
    /// }
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self {
            buckets: Box::default(),
            sum: 0,
            max: 0,
        }
    }

    /// Adds one duration.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::observe::Histogram;
    ///
    /// fn main() {
    ///     let mut histogram = Histogram::new();
    ///     assert!(histogram.is_empty());
    ///     for milliseconds in [1, 2, 3] {
    ///         histogram.record(Duration::from_millis(milliseconds));
    ///     }
    ///     assert_eq!((histogram.count(), histogram.sum()), (3, Duration::from_millis(6)));
    ///     assert_eq!(histogram.mean(), Duration::from_millis(2));
    ///     assert!(histogram.min() <= Duration::from_millis(1));
    ///     assert_eq!(histogram.max(), Duration::from_millis(3));
    /// }
    /// ```
    pub fn record(&mut self, duration: Duration) {
        self.record_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    #[inline]
    pub(crate) fn record_nanos(&mut self, nanos: u64) {
        match self.buckets.get_mut(index_of(nanos)) {
            Some(bucket) => *bucket += 1,
            None => self.record_first(nanos),
        }
        self.sum = self.sum.saturating_add(nanos);
        // Rarely a new maximum: a branch costs less than to write it again.
        if nanos > self.max {
            self.max = nanos;
        }
    }

    #[cold]
    fn record_first(&mut self, nanos: u64) {
        self.buckets = vec![0; BUCKETS].into();
        self.buckets[index_of(nanos)] += 1;
    }

    /// Returns the number of durations.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::observe::Histogram;
    ///
    /// fn main() {
    ///     let mut histogram = Histogram::new();
    ///     assert!(histogram.is_empty());
    ///     for milliseconds in [1, 2, 3] {
    ///         histogram.record(Duration::from_millis(milliseconds));
    ///     }
    ///     assert_eq!((histogram.count(), histogram.sum()), (3, Duration::from_millis(6)));
    ///     assert_eq!(histogram.mean(), Duration::from_millis(2));
    ///     assert!(histogram.min() <= Duration::from_millis(1));
    ///     assert_eq!(histogram.max(), Duration::from_millis(3));
    /// }
    /// ```
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns whether there is no duration.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buckets.iter().all(|&count| count == 0)
    }

    /// Returns the sum of all durations.
    #[must_use]
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum)
    }

    /// Returns the mean of all durations; zero if there is none.
    #[must_use]
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.sum.checked_div(self.count()).unwrap_or(0))
    }

    /// Returns the longest duration; zero if there is none.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::observe::Histogram;
    ///
    /// fn main() {
    ///     let mut histogram = Histogram::new();
    ///     assert!(histogram.is_empty());
    ///     for milliseconds in [1, 2, 3] {
    ///         histogram.record(Duration::from_millis(milliseconds));
    ///     }
    ///     assert_eq!((histogram.count(), histogram.sum()), (3, Duration::from_millis(6)));
    ///     assert_eq!(histogram.mean(), Duration::from_millis(2));
    ///     assert!(histogram.min() <= Duration::from_millis(1));
    ///     assert_eq!(histogram.max(), Duration::from_millis(3));
    /// }
    /// ```
    #[must_use]
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// Returns the lower bound of the first bucket with a duration; zero if there is none.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::observe::Histogram;
    ///
    /// fn main() {
    ///     let mut histogram = Histogram::new();
    ///     assert!(histogram.is_empty());
    ///     for milliseconds in [1, 2, 3] {
    ///         histogram.record(Duration::from_millis(milliseconds));
    ///     }
    ///     assert_eq!((histogram.count(), histogram.sum()), (3, Duration::from_millis(6)));
    ///     assert_eq!(histogram.mean(), Duration::from_millis(2));
    ///     assert!(histogram.min() <= Duration::from_millis(1));
    ///     assert_eq!(histogram.max(), Duration::from_millis(3));
    /// }
    /// ```
    #[must_use]
    pub fn min(&self) -> Duration {
        let first = self.buckets.iter().position(|&count| count > 0);
        Duration::from_nanos(first.map_or(0, |index| bounds_of(index).0))
    }

    /// Returns the duration that the share `q` of all durations does not exceed; zero if there is
    /// none. `q` is clamped to 0–1.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::observe::Histogram;
    ///
    /// fn main() {
    ///     let mut histogram = Histogram::new();
    ///     for milliseconds in 1..=100 {
    ///         histogram.record(Duration::from_millis(milliseconds));
    ///     }
    ///     println!("p99 {:?}", histogram.quantile(0.99));
    ///     assert_eq!(histogram.count_within(Duration::from_secs(1)), 100);
    ///     for (duration, count) in histogram.iter() {
    ///         println!("{count} of about {duration:?}");
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn quantile(&self, q: f64) -> Duration {
        let count = self.count();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a rank between 1 and the count; a rounding error moves it by one"
        )]
        let rank = ((q.clamp(0.0, 1.0) * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        for (index, &in_bucket) in self.buckets.iter().enumerate() {
            seen += in_bucket;
            if seen >= rank {
                return Duration::from_nanos(self.value_of(index));
            }
        }
        Duration::ZERO
    }

    /// Returns the number of durations of at most `limit`. The bucket that contains `limit` counts
    /// as a whole.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::observe::Histogram;
    ///
    /// fn main() {
    ///     let mut histogram = Histogram::new();
    ///     for milliseconds in 1..=100 {
    ///         histogram.record(Duration::from_millis(milliseconds));
    ///     }
    ///     println!("p99 {:?}", histogram.quantile(0.99));
    ///     assert_eq!(histogram.count_within(Duration::from_secs(1)), 100);
    ///     for (duration, count) in histogram.iter() {
    ///         println!("{count} of about {duration:?}");
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn count_within(&self, limit: Duration) -> u64 {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        self.buckets.iter().take(index_of(limit) + 1).sum()
    }

    /// Returns the buckets with at least one duration, shortest first: a representative duration
    /// and the count.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::observe::Histogram;
    ///
    /// fn main() {
    ///     let mut histogram = Histogram::new();
    ///     for milliseconds in 1..=100 {
    ///         histogram.record(Duration::from_millis(milliseconds));
    ///     }
    ///     println!("p99 {:?}", histogram.quantile(0.99));
    ///     assert_eq!(histogram.count_within(Duration::from_secs(1)), 100);
    ///     for (duration, count) in histogram.iter() {
    ///         println!("{count} of about {duration:?}");
    ///     }
    /// }
    /// ```
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Duration, u64)> + '_ {
        let used = self.buckets.iter().enumerate();
        used.filter(|&(_, &count)| count > 0)
            .map(|(index, &count)| (Duration::from_nanos(self.value_of(index)), count))
    }

    /// Returns what was added after `earlier`, an older copy of this histogram. The maximum is that
    /// of the buckets in which durations were added.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::observe::Histogram;
    ///
    /// fn main() {
    ///     let mut histogram = Histogram::new();
    ///     histogram.record(Duration::from_millis(1));
    ///     let earlier = histogram.clone();
    ///     histogram.record(Duration::from_millis(2));
    ///     assert_eq!(histogram.since(&earlier).count(), 1);
    /// }
    /// ```
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut added = self.clone();
        for (new, old) in added.buckets.iter_mut().zip(&earlier.buckets) {
            *new = new.saturating_sub(*old);
        }
        added.sum = self.sum.saturating_sub(earlier.sum);
        if self.max == earlier.max {
            let last = added.buckets.iter().rposition(|&count| count > 0);
            added.max = last.map_or(0, |index| bounds_of(index).1.min(self.max));
        }
        added
    }

    /// Adds the durations of another histogram.
    pub(crate) fn merge(&mut self, other: &Self) {
        if self.buckets.is_empty() {
            self.buckets.clone_from(&other.buckets);
        } else {
            for (count, more) in self.buckets.iter_mut().zip(&other.buckets) {
                *count += more;
            }
        }
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    /// Takes the durations as the busy periods of a loop in the time `whole`, and returns how long
    /// an event waits at most that becomes ready at a random moment, for the share `q` of all
    /// moments.
    // The share of moments with a delay above `x` is the sum of `b - x` over all busy periods
    // `b > x`, divided by the whole time. From the longest period down, that sum is linear between
    // two neighbouring lengths.
    #[inline]
    pub(crate) fn delay_quantile(&self, q: f64, whole: Duration) -> Duration {
        let target = (1.0 - q.clamp(0.0, 1.0)) * whole.as_secs_f64();
        let (mut count, mut sum) = (0.0, 0.0);
        let mut periods = self.iter().rev().peekable();
        while let Some((period, times)) = periods.next() {
            #[allow(clippy::cast_precision_loss, reason = "an estimate")]
            let times = times as f64;
            count += times;
            sum += times * period.as_secs_f64();
            let next = periods.peek().map_or(0.0, |(next, _)| next.as_secs_f64());
            if sum - count * next >= target {
                return Duration::from_secs_f64(((sum - target) / count).max(0.0));
            }
        }
        Duration::ZERO
    }

    /// Returns the middle of a bucket, and never more than the maximum.
    fn value_of(&self, index: usize) -> u64 {
        let (low, high) = bounds_of(index);
        // The maximum is exact, and may be far beyond the last bucket.
        if index == index_of(self.max) && self.buckets[index] == 1 || index == BUCKETS - 1 {
            return self.max;
        }
        (low + (high - low) / 2).min(self.max)
    }
}

/// A histogram under construction, for the hot paths of one thread: it is recorded through a shared
/// reference, and takes memory only for the powers of two that occur.
#[derive(Default)]
pub(crate) struct Tally {
    /// The counts by shift and step of [`place_of`]. Only the first group uses the lower half of
    /// its steps. The others leave it empty, which saves each record a subtraction.
    groups: [OnceCell<Box<[Cell<u64>; 2 * STEPS]>>; GROUPS - 1],
    sum: Cell<u64>,
    max: Cell<u64>,
}

impl Tally {
    /// Adds one duration, in nanoseconds.
    #[inline(always)]
    pub(crate) fn record(&self, nanos: u64) {
        let (shift, step) = place_of(nanos);
        match self.groups.get(shift).and_then(OnceCell::get) {
            // The remainder changes nothing, and spares the check of the bound.
            Some(group) => {
                let count = &group[step % (2 * STEPS)];
                count.set(count.get() + 1);
            }
            None => self.record_cold(shift, step),
        }
        self.sum.set(self.sum.get().wrapping_add(nanos));
        if nanos > self.max.get() {
            self.max.set(nanos);
        }
    }

    #[cold]
    fn record_cold(&self, shift: usize, step: usize) {
        let (group, step) = match self.groups.get(shift) {
            Some(group) => (group, step),
            // The duration is beyond the last bucket.
            None => (&self.groups[GROUPS - 2], 2 * STEPS - 1),
        };
        let group = group.get_or_init(|| Box::new([const { Cell::new(0) }; 2 * STEPS]));
        group[step].set(group[step].get() + 1);
    }

    /// Returns a copy.
    #[inline]
    pub(crate) fn histogram(&self) -> Histogram {
        let mut histogram = Histogram::new();
        for (number, group) in self.groups.iter().enumerate() {
            let Some(group) = group.get() else { continue };
            if histogram.buckets.is_empty() {
                histogram.buckets = vec![0; BUCKETS].into();
            }
            let buckets = &mut histogram.buckets[number * STEPS..];
            // The ranges of two neighbours overlap in buckets that only one of them counts.
            for (bucket, count) in buckets.iter_mut().zip(&**group) {
                *bucket += count.get();
            }
        }
        (histogram.sum, histogram.max) = (self.sum.get(), self.max.get());
        histogram
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count())
            .field("mean", &self.mean())
            .field("p50", &self.quantile(0.5))
            .field("p99", &self.quantile(0.99))
            .field("max", &self.max())
            .finish_non_exhaustive()
    }
}

#[inline]
fn index_of(nanos: u64) -> usize {
    let (shift, step) = place_of(nanos);
    // The highest bit of the step counts for one more power.
    (STEPS * shift + step).min(BUCKETS - 1)
}

/// Returns the power of two of a duration, and the step that its highest bits are.
#[inline]
fn place_of(nanos: u64) -> (usize, usize) {
    let units = nanos >> UNIT_BITS;
    // The position of the highest bit selects the power of two, and the bits below it select the
    // bucket. The first two powers have the same width; the bit that is set for them makes this one
    // formula, without a branch.
    let shift = (units | STEPS as u64).ilog2() - STEP_BITS;
    (shift as usize, (units >> shift) as usize)
}

/// Returns the first nanosecond of a bucket and the first one after it.
fn bounds_of(index: usize) -> (u64, u64) {
    let (power, step) = (index / STEPS, (index % STEPS) as u64);
    if power == 0 {
        return (step << UNIT_BITS, (step + 1) << UNIT_BITS);
    }
    let shift = UNIT_BITS + power as u32 - 1;
    let low = (STEPS as u64 + step) << shift;
    (low, low + (1 << shift))
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, Histogram, Tally, bounds_of, index_of};
    use std::time::Duration;

    #[test]
    fn every_bucket_holds_the_values_between_its_bounds() {
        let mut end = 0;
        for index in 0..BUCKETS {
            let (low, high) = bounds_of(index);
            assert_eq!(low, end, "the buckets leave no gap");
            assert_eq!((index_of(low), index_of(high - 1)), (index, index));
            end = high;
        }
        assert_eq!(end, 1 << 36);
        assert_eq!(index_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_within_the_error_of_a_bucket() {
        let mut histogram = Histogram::new();
        let mut values: Vec<u64> = (0..10_000_u64).map(|i| 40 + i * i * 37).collect();
        values
            .iter()
            .for_each(|&nanos| histogram.record_nanos(nanos));
        values.sort_unstable();
        for (q, rank) in [(0.01, 100), (0.5, 5_000), (0.9, 9_000), (0.999, 9_990)] {
            let exact = values[rank - 1] as f64;
            let found = histogram.quantile(q).as_nanos() as f64;
            assert!(
                (found - exact).abs() <= exact * 0.032 + 32.0,
                "{q}: {found} {exact}"
            );
        }
        assert_eq!(
            histogram.quantile(1.0).as_nanos(),
            u128::from(values[9_999])
        );
    }

    #[test]
    fn a_tally_becomes_the_histogram_of_what_was_recorded() {
        let (tally, mut histogram) = (Tally::default(), Histogram::new());
        assert!(tally.histogram().is_empty());
        for nanos in (0..40)
            .map(|power| (1 << power) + 3)
            .chain([0, 31, 999, u64::MAX >> 20])
        {
            tally.record(nanos);
            histogram.record_nanos(nanos);
        }
        let found = tally.histogram();
        assert_eq!(found.buckets, histogram.buckets);
        assert_eq!(
            (found.sum(), found.max()),
            (histogram.sum(), histogram.max())
        );
    }

    #[test]
    fn sum_and_maximum_are_exact_also_beyond_the_last_bucket() {
        let mut histogram = Histogram::new();
        assert_eq!(
            (histogram.max(), histogram.quantile(0.5)),
            (Duration::ZERO, Duration::ZERO)
        );
        histogram.record(Duration::from_nanos(33));
        histogram.record(Duration::from_secs(100));
        assert_eq!(histogram.sum(), Duration::new(100, 33));
        assert_eq!(histogram.quantile(0.9), Duration::from_secs(100));
        assert_eq!(histogram.min(), Duration::from_nanos(32));
    }

    #[test]
    fn a_difference_has_only_what_was_added() {
        let mut histogram = Histogram::new();
        histogram.record(Duration::from_secs(2));
        let earlier = histogram.clone();
        histogram.record(Duration::from_millis(10));
        let added = histogram.since(&earlier);
        assert_eq!((added.count(), added.sum()), (1, Duration::from_millis(10)));
        let max = added.max().as_secs_f64();
        assert!((max / 0.010 - 1.0).abs() < 0.032, "{max}");
        assert_eq!(added.count_within(Duration::from_millis(20)), 1);
        assert_eq!(added.count_within(Duration::from_millis(5)), 0);
    }
}
