//! The delay of a timer, as JavaScript converts a number.

use std::time::Duration;

/// The longest delay, in milliseconds.
const LONGEST: f64 = i32::MAX as f64;

/// A delay in milliseconds, converted from a number, a text or a [`Duration`].
///
/// Every delay is accepted, as in Node. A delay that is not a number, or below one millisecond,
/// becomes one millisecond. A delay above 2³¹ − 1 milliseconds becomes one millisecond too, with a
/// warning. Fractions are cut off.
///
/// # Examples
///
/// ```
/// use phaseloop_node::Delay;
/// use std::time::Duration;
///
/// assert_eq!(Delay::from(1.9).as_millis(), 1);
/// assert_eq!(Delay::from(-5).as_millis(), 1);
/// assert_eq!(Delay::from(f64::NAN).as_millis(), 1);
/// assert_eq!(Delay::from(Duration::from_secs(2)).as_millis(), 2_000);
/// assert_eq!(Delay::from(2_147_483_648_u64).as_millis(), 1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Delay {
    asked: f64,
    /// The resulting delay. The conversion happens at creation, where the number is often a
    /// constant that the compiler folds.
    millis: u32,
}

impl Delay {
    /// The delay that a timer uses: a whole number from 1 to 2³¹ − 1.
    #[must_use]
    #[inline]
    pub fn as_millis(self) -> u32 {
        self.millis
    }

    /// The delay of a time limit, where zero means that there is none.
    #[inline]
    pub(super) fn as_limit(self) -> Option<u32> {
        (self.asked != 0.0).then_some(self.millis)
    }

    /// The text of the warning, if the delay was too long.
    #[inline]
    pub(super) fn warning(self) -> Option<String> {
        (self.asked > LONGEST).then(|| self.too_long())
    }

    #[cold]
    fn too_long(self) -> String {
        format!(
            "{} ms do not fit into a 32-bit signed integer; the timer waits for 1 ms",
            self.asked
        )
    }
}

impl From<f64> for Delay {
    #[inline]
    fn from(asked: f64) -> Self {
        let millis = if (1.0..=LONGEST).contains(&asked) {
            asked as u32
        } else {
            1
        };
        Self { asked, millis }
    }
}

impl From<i32> for Delay {
    #[inline]
    fn from(asked: i32) -> Self {
        Self::from(f64::from(asked))
    }
}

impl From<u32> for Delay {
    #[inline]
    fn from(asked: u32) -> Self {
        Self::from(f64::from(asked))
    }
}

impl From<i64> for Delay {
    #[inline]
    fn from(asked: i64) -> Self {
        Self::from(asked as f64)
    }
}

impl From<u64> for Delay {
    #[inline]
    fn from(asked: u64) -> Self {
        Self::from(asked as f64)
    }
}

/// Parses the text as a number. Any other text counts as not a number.
impl From<&str> for Delay {
    #[inline]
    fn from(asked: &str) -> Self {
        Self::from(asked.trim().parse().unwrap_or(f64::NAN))
    }
}

impl From<Duration> for Delay {
    #[inline]
    fn from(asked: Duration) -> Self {
        Self::from(asked.as_secs_f64() * 1_000.0)
    }
}
