//! The events of level-triggered sources.

use std::fmt;
use std::ops::{BitOr, BitOrAssign};

/// A set of events that a [`PollHandle`](crate::io::PollHandle) is started for, or is called with.
///
/// # Examples
///
/// ```
/// use phaseloop::io::PollEvents;
///
/// fn main() {
///     let both = PollEvents::READABLE | PollEvents::WRITABLE;
///     assert!(both.contains(PollEvents::WRITABLE) && !both.contains(PollEvents::DISCONNECT));
///     assert_eq!(format!("{both:?}"), "READABLE | WRITABLE");
/// }
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PollEvents(u8);

impl PollEvents {
    /// The empty set.
    pub const NONE: Self = Self(0);
    /// Reading does not block: data, a connection or EOF is available.
    pub const READABLE: Self = Self(1);
    /// Writing does not block.
    pub const WRITABLE: Self = Self(1 << 1);
    /// The peer has closed its end, at least for writing (`POLLRDHUP`). Linux only.
    pub const DISCONNECT: Self = Self(1 << 2);
    /// Urgent data is available (`POLLPRI`). Linux only.
    pub const PRIORITIZED: Self = Self(1 << 3);

    const NAMES: [(Self, &'static str); 4] = [
        (Self::READABLE, "READABLE"),
        (Self::WRITABLE, "WRITABLE"),
        (Self::DISCONNECT, "DISCONNECT"),
        (Self::PRIORITIZED, "PRIORITIZED"),
    ];

    /// Returns whether the set contains all events of `other`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::PollEvents;
    ///
    /// fn main() {
    ///     let both = PollEvents::READABLE | PollEvents::WRITABLE;
    ///     assert!(both.contains(PollEvents::READABLE));
    ///     assert_eq!(both.intersection(PollEvents::WRITABLE), PollEvents::WRITABLE);
    ///     assert!(both.intersection(PollEvents::DISCONNECT).is_empty());
    /// }
    /// ```
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns whether the set is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::PollEvents;
    ///
    /// fn main() {
    ///     let both = PollEvents::READABLE | PollEvents::WRITABLE;
    ///     assert!(both.contains(PollEvents::READABLE));
    ///     assert_eq!(both.intersection(PollEvents::WRITABLE), PollEvents::WRITABLE);
    ///     assert!(both.intersection(PollEvents::DISCONNECT).is_empty());
    /// }
    /// ```
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the events that are in both sets.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::io::PollEvents;
    ///
    /// fn main() {
    ///     let both = PollEvents::READABLE | PollEvents::WRITABLE;
    ///     assert!(both.contains(PollEvents::READABLE));
    ///     assert_eq!(both.intersection(PollEvents::WRITABLE), PollEvents::WRITABLE);
    ///     assert!(both.intersection(PollEvents::DISCONNECT).is_empty());
    /// }
    /// ```
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitOr for PollEvents {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for PollEvents {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for PollEvents {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Self::NAMES.into_iter();
        let names: Vec<_> = names
            .filter(|(event, _)| self.contains(*event))
            .map(|(_, name)| name)
            .collect();
        f.write_str(if names.is_empty() { "NONE" } else { "" })?;
        f.write_str(&names.join(" | "))
    }
}
