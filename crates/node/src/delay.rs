//! The delay of a timer, as JavaScript converts a number.

use std::time::Duration;

use crate::error::Error;
use crate::process;
use phaseloop::LoopHandle;

/// The longest delay, in milliseconds.
const LONGEST: f64 = i32::MAX as f64;

/// A delay in milliseconds, converted from a number, a text or a [`Duration`].
///
/// Every delay is accepted, as in Node. A delay that is not a number, or below one millisecond,
/// becomes one millisecond, and so does a delay above 2³¹ − 1 milliseconds. Fractions are cut off.
///
/// A timer emits the [warnings](crate::process::on_warning) of Node: `TimeoutOverflowWarning` for
/// each delay that is too long, `TimeoutNegativeWarning` for the first negative one of a program,
/// and `TimeoutNaNWarning` for the first one that is not a number.
///
/// # Examples
///
/// ```
/// use phaseloop_node::Delay;
/// use std::time::Duration;
///
/// fn main() {
///     assert_eq!(Delay::from(1.9).as_millis(), 1);
///     assert_eq!(Delay::from(-5).as_millis(), 1);
///     assert_eq!(Delay::from(f64::NAN).as_millis(), 1);
///     assert_eq!(Delay::from(Duration::from_secs(2)).as_millis(), 2_000);
///     assert_eq!(Delay::from(2_147_483_648_u64).as_millis(), 1);
/// }
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

    /// Returns the idle time of a socket, where zero means that there is none. A time that is too
    /// long is cut, with a warning.
    ///
    /// # Errors
    ///
    /// `ERR_OUT_OF_RANGE` for what is no time; `name` is that of the argument.
    pub(super) fn as_idle_time(self, name: &str) -> Result<Option<Self>, Error> {
        let asked = self.asked;
        if !(0.0..f64::INFINITY).contains(&asked) {
            let number = number_text(asked);
            let text = format!(
                "The value of \"{name}\" is out of range. It must be a non-negative finite number. Received {number}"
            );
            return Err(Error::range_error(text).coded("ERR_OUT_OF_RANGE"));
        }
        if asked > LONGEST {
            let number = number_text(asked);
            let text = format!(
                "{number} does not fit into a 32-bit signed integer.\nTimer duration was truncated to {LONGEST}."
            );
            if LoopHandle::try_current().is_some() {
                process::emit_warning("TimeoutOverflowWarning", &text);
            }
            return Ok(Some(Self::from(LONGEST)));
        }
        Ok((asked != 0.0).then_some(self))
    }

    /// Returns what is wrong with the delay, if a timer has to warn about it.
    #[inline]
    pub(super) fn fault(self) -> Option<Fault> {
        match (0.0..=LONGEST).contains(&self.asked) {
            true => None,
            false => Some(self.known_fault()),
        }
    }

    #[cold]
    fn known_fault(self) -> Fault {
        if self.asked.is_nan() {
            Fault::NotANumber
        } else if self.asked < 0.0 {
            Fault::Negative
        } else {
            Fault::TooLong
        }
    }

    /// Returns the name and the text of the warning about a fault.
    #[cold]
    pub(super) fn warning(self, fault: Fault) -> (&'static str, String) {
        let (name, what) = match fault {
            Fault::TooLong => (
                "TimeoutOverflowWarning",
                "does not fit into a 32-bit signed integer",
            ),
            Fault::Negative => ("TimeoutNegativeWarning", "is a negative number"),
            Fault::NotANumber => ("TimeoutNaNWarning", "is not a number"),
        };
        let number = number_text(self.asked);
        (
            name,
            format!("{number} {what}.\nTimeout duration was set to 1."),
        )
    }
}

/// What is wrong with a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    TooLong,
    Negative,
    NotANumber,
}

/// Returns a number as JavaScript writes it.
fn number_text(number: f64) -> String {
    let size = number.abs();
    if size.is_infinite() {
        number.to_string().replace("inf", "Infinity")
    } else if size >= 1e21 {
        format!("{number:e}").replace('e', "e+")
    } else if size > 0.0 && size < 1e-6 {
        format!("{number:e}")
    } else {
        number.to_string()
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

/// Parses the text as a number; an empty text is zero. Any other text counts as not a number.
impl From<&str> for Delay {
    #[inline]
    fn from(asked: &str) -> Self {
        match asked.trim() {
            "" => Self::from(0),
            text => Self::from(text.parse().unwrap_or(f64::NAN)),
        }
    }
}

impl From<Duration> for Delay {
    #[inline]
    fn from(asked: Duration) -> Self {
        Self::from(asked.as_secs_f64() * 1_000.0)
    }
}
