//! A moment on the clock of the loop.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::{Duration, Instant as StdInstant};

use crate::runtime::loop_handle::LoopHandle;
use crate::sys;

/// A moment on the clock of the loop: [`now`](Self::now) and [`elapsed`](Self::elapsed) follow it,
/// also while a test has paused it.
///
/// It converts from and into [`std::time::Instant`], whose `elapsed` reads the clock of the OS.
/// The functions of this module that take a deadline take both types.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use phaseloop::time::{Instant, sleep};
///
/// #[phaseloop::main(start_paused = true)]
/// async fn main() {
///     let start = Instant::now();
///     sleep(Duration::from_secs(3600)).await;
///     assert_eq!(start.elapsed(), Duration::from_secs(3600));
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(StdInstant);

impl Instant {
    /// Reads the clock of the running loop; without one, the monotonic clock of the OS.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::time::Instant;
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let start = Instant::now();
    ///     assert!(Instant::now() >= start);
    /// }
    /// ```
    #[must_use]
    pub fn now() -> Self {
        match LoopHandle::try_current() {
            Some(handle) => Self::of(&handle),
            None => Self(sys::clock::monotonic()),
        }
    }

    /// Reads the clock of a loop.
    pub(super) fn of(handle: &LoopHandle) -> Self {
        let clock = &handle.core().executor.clock;
        Self(clock.instant(clock.read()))
    }

    /// Returns the time since this moment, or zero for a moment in the future.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::time::{now, sleep};
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let start = now();
    ///     sleep(Duration::from_millis(2)).await;
    ///     assert!(start.elapsed() >= Duration::from_millis(2));
    /// }
    /// ```
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        Self::now().duration_since(*self)
    }

    /// Returns the time since `earlier`, or zero if `earlier` is later.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::time::Instant;
    ///
    /// fn main() {
    ///     let (start, second) = (Instant::now(), Duration::from_secs(1));
    ///     assert_eq!((start + second).duration_since(start), second);
    ///     assert_eq!(start.duration_since(start + second), Duration::ZERO);
    /// }
    /// ```
    #[must_use]
    #[doc(alias = "saturating_duration_since")]
    pub fn duration_since(&self, earlier: Self) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }

    /// Returns the time since `earlier`, or `None` if `earlier` is later.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::time::Instant;
    ///
    /// fn main() {
    ///     let start = Instant::now();
    ///     let later = start + Duration::from_secs(1);
    ///     assert_eq!(start.checked_duration_since(later), None);
    /// }
    /// ```
    #[must_use]
    pub fn checked_duration_since(&self, earlier: Self) -> Option<Duration> {
        self.0.checked_duration_since(earlier.0)
    }

    /// Returns the moment `duration` later, or `None` beyond the range of the clock.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::time::Instant;
    ///
    /// fn main() {
    ///     let start = Instant::now();
    ///     assert!(start.checked_add(Duration::from_secs(1)) > Some(start));
    ///     assert_eq!(start.checked_add(Duration::MAX), None);
    /// }
    /// ```
    #[must_use]
    pub fn checked_add(&self, duration: Duration) -> Option<Self> {
        self.0.checked_add(duration).map(Self)
    }

    /// Returns the moment `duration` earlier, or `None` beyond the range of the clock.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use phaseloop::time::Instant;
    ///
    /// fn main() {
    ///     assert_eq!(Instant::now().checked_sub(Duration::MAX), None);
    /// }
    /// ```
    #[must_use]
    pub fn checked_sub(&self, duration: Duration) -> Option<Self> {
        self.0.checked_sub(duration).map(Self)
    }

    /// Converts a moment of the standard library, as `From` does.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::time::Instant;
    ///
    /// fn main() {
    ///     let real = std::time::Instant::now();
    ///     assert_eq!(Instant::from_std(real).into_std(), real);
    /// }
    /// ```
    #[must_use]
    pub fn from_std(instant: StdInstant) -> Self {
        Self(instant)
    }

    /// Converts into a moment of the standard library, as `Into` does.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::time::Instant;
    ///
    /// fn main() {
    ///     let real: std::time::Instant = Instant::now().into_std();
    ///     assert!(real <= std::time::Instant::now());
    /// }
    /// ```
    #[must_use]
    pub fn into_std(self) -> StdInstant {
        self.0
    }
}

impl From<StdInstant> for Instant {
    fn from(instant: StdInstant) -> Self {
        Self(instant)
    }
}

impl From<Instant> for StdInstant {
    fn from(instant: Instant) -> Self {
        instant.0
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    /// # Panics
    ///
    /// If the sum is beyond the range of the clock; see [`Instant::checked_add`].
    fn add(self, duration: Duration) -> Self {
        Self(self.0 + duration)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    /// # Panics
    ///
    /// If the difference is beyond the range of the clock; see [`Instant::checked_sub`].
    fn sub(self, duration: Duration) -> Self {
        Self(self.0 - duration)
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

impl Sub for Instant {
    type Output = Duration;

    /// Returns the time since `earlier`, or zero if `earlier` is later.
    fn sub(self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }
}
