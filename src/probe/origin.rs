//! Where an activity comes from.

use std::fmt;
use std::time::Duration;

use crate::clock::NEVER;
use crate::keeper::Keeper;
use crate::site::Site;

/// Where an activity comes from. Only a watched loop computes it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Origin {
    /// What kind of handle or request it belongs to.
    pub(crate) kind: Option<Keeper>,
    /// The line of the program that created the handle, request, task or closure.
    pub(crate) site: Option<Site>,
    /// The deadline of a timer.
    pub(crate) due: Option<u64>,
}

impl Origin {
    /// The kind of what causes a callback, and the line that queued it, if known.
    pub fn new(kind: Keeper, site: Option<Site>) -> Self {
        Self {
            kind: Some(kind),
            site,
            due: None,
        }
    }

    /// Returns the origin of what is known by its line only.
    pub(crate) fn at(site: Option<Site>) -> Self {
        Self {
            site,
            ..Self::default()
        }
    }

    /// Adds the deadline, in nanoseconds of the loop's clock.
    pub fn due(self, deadline: u64) -> Self {
        Self {
            due: Some(deadline),
            ..self
        }
    }

    /// Returns the line of the log for a timer that is armed at the time `now`.
    pub(crate) fn armed_text(self, now: u64) -> String {
        let (kind, at) = (self.kind.map_or("timer", Keeper::text), At(self.site));
        match self.due {
            None | Some(NEVER) => format!("{kind}{at} armed, is never due"),
            Some(due) => {
                let left = Duration::from_nanos(due.saturating_sub(now));
                format!("{kind}{at} armed, due in {left:.1?}")
            }
        }
    }
}

/// A line in parentheses, with a space before them.
pub(super) struct At(pub(super) Option<Site>);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(site) => write!(f, " ({site})"),
            None => Ok(()),
        }
    }
}
