//! What is asked of a poller whose interests are one-shot.
//!
//! An event takes back the interests in both directions, though it may report one of them. This
//! table knows what was asked and is not reported yet: that is asked again.

use std::collections::HashMap;
use std::hash::Hash;

/// The directions asked for, by the keys of the sources.
pub(super) struct Asked<S> {
    by_key: HashMap<usize, Entry<S>>,
    /// The keys of the sources.
    keys: HashMap<S, usize>,
}

struct Entry<S> {
    source: S,
    directions: Directions,
}

/// The directions of an interest or an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sys) struct Directions {
    pub(in crate::sys) read: bool,
    pub(in crate::sys) write: bool,
}

impl Directions {
    pub(in crate::sys) const BOTH: Self = Self {
        read: true,
        write: true,
    };

    #[cfg(windows)]
    pub(in crate::sys) const NONE: Self = Self {
        read: false,
        write: false,
    };

    pub(in crate::sys) fn interest(self, key: usize) -> polling::Event {
        polling::Event::new(key, self.read, self.write)
    }
}

impl<S> Default for Asked<S> {
    fn default() -> Self {
        Self {
            by_key: HashMap::new(),
            keys: HashMap::new(),
        }
    }
}

impl<S: Copy + Eq + Hash> Asked<S> {
    /// Adds a source that is registered for these directions.
    pub(super) fn insert(&mut self, key: usize, source: S, directions: Directions) {
        self.by_key.insert(key, Entry { source, directions });
        self.keys.insert(source, key);
    }

    pub(super) fn remove(&mut self, source: S) {
        if let Some(key) = self.keys.remove(&source) {
            self.by_key.remove(&key);
        }
    }

    /// Asks for more directions of a source. Returns all that are asked for, if some are new.
    pub(super) fn ask(&mut self, key: usize, more: Directions) -> Option<Directions> {
        let entry = self.by_key.get_mut(&key)?;
        let before = entry.directions;
        entry.directions.read |= more.read;
        entry.directions.write |= more.write;
        (entry.directions != before).then_some(entry.directions)
    }

    /// Takes the directions of an event out. Returns the source and what else was asked for, which
    /// the event has taken back.
    pub(super) fn report(&mut self, key: usize, reported: Directions) -> Option<(S, Directions)> {
        let entry = self.by_key.get_mut(&key)?;
        entry.directions.read &= !reported.read;
        entry.directions.write &= !reported.write;
        let left = entry.directions;
        (left.read || left.write).then_some((entry.source, left))
    }
}

#[cfg(test)]
mod tests {
    use super::{Asked, Directions};

    const READ: Directions = Directions {
        read: true,
        write: false,
    };
    const WRITE: Directions = Directions {
        read: false,
        write: true,
    };

    #[test]
    fn what_an_event_does_not_report_is_asked_again() {
        let mut asked = Asked::default();
        asked.insert(7, "socket", Directions::BOTH);
        assert_eq!(asked.report(7, WRITE), Some(("socket", READ)));
        assert_eq!(asked.ask(7, READ), None, "it is asked for already");
        assert_eq!(asked.ask(7, WRITE), Some(Directions::BOTH));
        assert_eq!(asked.report(7, READ), Some(("socket", WRITE)));
        assert_eq!(asked.report(7, Directions::BOTH), None);
        assert_eq!(asked.ask(7, READ), Some(READ));
    }

    #[test]
    fn a_source_that_was_removed_is_not_asked_for() {
        let mut asked = Asked::default();
        asked.insert(7, "socket", Directions::BOTH);
        asked.remove("socket");
        asked.remove("unknown");
        assert_eq!(asked.report(7, READ), None);
        assert_eq!(asked.ask(7, READ), None);
    }
}
