//! Latencies, kept whole: a histogram with three significant digits from a nanosecond to a minute.

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;

const MINUTE: u64 = 60_000_000_000;

#[derive(Clone)]
pub struct Latencies(Histogram<u64>);

impl Latencies {
    #[must_use]
    pub fn new() -> Self {
        Self(Histogram::new_with_bounds(1, MINUTE, 3).expect("the bounds are in order"))
    }

    pub fn record(&mut self, latency: Duration) {
        self.0.saturating_record(latency.as_nanos() as u64);
    }

    /// The latency in nanoseconds that this share of all stayed below.
    #[must_use]
    pub fn at(&self, share: f64) -> f64 {
        self.0.value_at_quantile(share) as f64
    }

    #[must_use]
    pub fn max(&self) -> f64 {
        self.0.max() as f64
    }

    /// How many latencies there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    pub fn add(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all have the same bounds");
    }

    /// One line a value that occurred.
    pub fn print(&self) {
        for line in self.lines() {
            println!("latency {line}");
        }
    }

    /// Each value that occurred, in nanoseconds, and how often.
    fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter_recorded().map(|bucket| {
            let (value, count) = (
                bucket.value_iterated_to(),
                bucket.count_since_last_iteration(),
            );
            format!("{value} {count}")
        })
    }

    /// Reads a line that `print` wrote, without its first word.
    pub fn read(&mut self, line: &str) -> Option<()> {
        let (value, count) = line.trim().split_once(' ')?;
        let value = value.parse().ok()?;
        self.0.saturating_record_n(value, count.parse().ok()?);
        Some(())
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Latencies")
            .field("count", &self.count())
            .field("median", &self.at(0.5))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_can_be_read() {
        let mut written = Latencies::new();
        for i in 1..=1000 {
            written.record(Duration::from_micros(i));
        }
        let mut read = Latencies::new();
        for line in written.lines() {
            read.read(&line).expect("it was written so");
        }
        assert_eq!(read.count(), 1000);
        assert_eq!(read.at(0.5), written.at(0.5));
        assert!((read.at(0.99) - 990_000.0).abs() < 1000.0);
        assert_eq!(read.read("no numbers"), None);
    }
}
