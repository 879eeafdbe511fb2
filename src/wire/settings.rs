//! What a test may set of the network in memory.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::clock::nanoseconds;

/// The most steps that a range of latencies is divided into.
const MOST_STEPS: u64 = 16;

const MILLISECOND: u64 = 1_000_000;

/// How packets travel between two hosts of a [`Network`](crate::sim::Network), in both directions.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::sim::Link;
///
/// fn main() {
///     let slow = Link {
///         latency: Duration::from_millis(40)..=Duration::from_millis(60),
///         bandwidth: Some(100_000),
///         ..Link::default()
///     };
///     assert_eq!(slow.loss, 0.0);
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::exhaustive_structs, reason = "tests construct links")]
pub struct Link {
    /// How long a packet takes. A seed chooses among steps of a millisecond, at most 16 of them.
    pub latency: RangeInclusive<Duration>,
    /// The most of the datagrams that are lost: `0.1` is every tenth. Bytes of a TCP connection are
    /// never lost.
    ///
    /// A seed chooses which datagrams are lost. The first may be among them, and after it no more
    /// than this share of those that were sent.
    pub loss: f64,
    /// Whether datagrams may overtake each other and may arrive twice. Bytes of a TCP connection
    /// stay in order.
    pub reorder: bool,
    /// The bytes that a direction carries in a second; `None` for no limit.
    pub bandwidth: Option<u64>,
}

impl Default for Link {
    /// Returns a link of 0 to 5 ms that loses nothing and keeps the order.
    fn default() -> Self {
        Self {
            latency: Duration::ZERO..=Duration::from_millis(5),
            loss: 0.0,
            reorder: false,
            bandwidth: None,
        }
    }
}

impl Link {
    pub(super) fn least(&self) -> u64 {
        nanoseconds(*self.latency.start())
    }

    fn width(&self) -> u64 {
        nanoseconds(*self.latency.end()).saturating_sub(self.least())
    }

    /// Returns the number of steps above the least latency.
    pub(super) fn steps(&self) -> u64 {
        self.width().div_ceil(MILLISECOND).min(MOST_STEPS)
    }

    /// Returns the latency of a step; 0 is the least one.
    pub(super) fn latency_of(&self, step: u64) -> u64 {
        let all = self.steps().max(1);
        // A step beyond the last is a datagram that others overtake.
        let extra = step.saturating_sub(self.steps()) * MILLISECOND;
        let share = u128::from(self.width()) * u128::from(step.min(self.steps())) / u128::from(all);
        self.least()
            .saturating_add(u64::try_from(share).unwrap_or(u64::MAX))
            .saturating_add(extra)
    }

    /// Returns how long so many bytes occupy the link.
    pub(super) fn transfer(&self, bytes: usize) -> u64 {
        let Some(bandwidth) = self.bandwidth else {
            return 0;
        };
        let time = bytes as u128 * 1_000_000_000 / u128::from(bandwidth.max(1));
        u64::try_from(time).unwrap_or(u64::MAX)
    }
}

/// The settings of a [`Network`](crate::sim::Network).
///
/// # Examples
///
/// A network whose connections hold back a writer after 1 KiB, and that loses datagrams:
///
/// ```
/// use phaseloop::shuffle::Explore;
/// use phaseloop::sim::Settings;
///
/// fn main() {
///     let settings = Settings {
///         window: 1024,
///         loss: 0.1,
///         ..Settings::default()
///     };
///     Explore::new().seeds(10).network(settings).run(|| async {});
/// }
/// ```
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::exhaustive_structs, reason = "tests construct settings")]
pub struct Settings {
    /// The most bytes of one direction of a connection that are sent and not read: 64 KiB. 0 counts
    /// as 1.
    pub window: usize,
    /// The most connections that wait for one listener to accept them, whatever it asked for: 1024.
    pub backlog: usize,
    /// The bytes of the datagrams that wait in one socket, beyond which datagrams are dropped:
    /// 64 KiB.
    pub datagrams: usize,
    /// The [latency](Link::latency) between two hosts for which no link is set: 0 to 5 ms.
    pub latency: RangeInclusive<Duration>,
    /// The most of the datagrams that such hosts [lose](Link::loss): none.
    pub loss: f64,
    /// Whether datagrams of such hosts may be [reordered](Link::reorder): no.
    pub reorder: bool,
    /// The [bandwidth](Link::bandwidth) between such hosts: no limit.
    pub bandwidth: Option<u64>,
    /// The time after which a connect fails that gets no answer: 127 s, as on Linux.
    pub connect_timeout: Duration,
    /// The seed of latencies and losses on a loop that is not shuffled.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        let Link {
            latency,
            loss,
            reorder,
            bandwidth,
        } = Link::default();
        Self {
            window: 64 * 1024,
            backlog: 1024,
            datagrams: 64 * 1024,
            latency,
            loss,
            reorder,
            bandwidth,
            connect_timeout: Duration::from_secs(127),
            seed: 0,
        }
    }
}

impl Settings {
    /// Returns the link between two hosts for which none is set.
    pub(super) fn link(&self) -> Link {
        Link {
            latency: self.latency.clone(),
            loss: self.loss,
            reorder: self.reorder,
            bandwidth: self.bandwidth,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Link;
    use std::time::Duration;

    fn link(from: u64, to: u64) -> Link {
        Link {
            latency: Duration::from_millis(from)..=Duration::from_millis(to),
            ..Link::default()
        }
    }

    #[test]
    fn a_range_has_steps_of_a_millisecond() {
        let five = link(2, 7);
        assert_eq!(five.steps(), 5);
        assert_eq!(five.latency_of(0), 2_000_000);
        assert_eq!(five.latency_of(3), 5_000_000);
        assert_eq!(five.latency_of(6), 8_000_000, "overtaken");
        assert_eq!(link(3, 3).steps(), 0);
        assert_eq!(link(3, 3).latency_of(0), 3_000_000);
    }

    #[test]
    fn a_wide_range_has_few_steps_and_both_ends() {
        let wide = link(0, 1600);
        assert_eq!(wide.steps(), 16);
        assert_eq!(wide.latency_of(1), 100_000_000);
        assert_eq!(wide.latency_of(16), 1_600_000_000);
    }

    #[test]
    fn bandwidth_takes_time() {
        let slow = Link {
            bandwidth: Some(1000),
            ..Link::default()
        };
        assert_eq!(slow.transfer(500), 500_000_000);
        assert_eq!(Link::default().transfer(500), 0);
    }
}
