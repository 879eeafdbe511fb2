//! The entries of a directory, compared with those of an earlier moment: what a kernel that does
//! not name the changed entry leaves to its user.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;

use super::WatchKind;

/// The entries of a directory by name.
#[derive(Default)]
pub(in crate::sys) struct Entries(HashMap<OsString, Entry>);

#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry {
    /// The number of the file. It stays when the entry is renamed.
    file: u64,
    is_directory: bool,
}

/// A change of an entry.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::sys) struct Change {
    pub(in crate::sys) kind: WatchKind,
    pub(in crate::sys) name: OsString,
    pub(in crate::sys) is_directory: bool,
}

impl Entries {
    /// Adds an entry, by the number of its file.
    pub(in crate::sys) fn insert(&mut self, name: OsString, file: u64, is_directory: bool) {
        self.0.insert(name, Entry { file, is_directory });
    }

    /// Replaces the entries by those of a later moment, and returns what has changed: removed
    /// entries, renamed ones and new ones, each by name. `renames` is the number of the last
    /// rename.
    ///
    /// A file that got the number of a removed one looks like a rename.
    pub(in crate::sys) fn update(&mut self, later: Self, renames: &Cell<u32>) -> Vec<Change> {
        let earlier = std::mem::replace(self, later);
        let is_new = |name: &OsString, entry: &Entry| {
            earlier.0.get(name).is_none_or(|old| old.file != entry.file)
        };
        let mut new = Vec::from_iter(self.0.iter().filter(|(name, entry)| is_new(name, entry)));
        new.sort_unstable_by_key(|(name, _)| *name);
        // A name that now belongs to another file was overwritten, not removed.
        let is_gone = |name: &OsString| !self.0.contains_key(name);
        let mut gone = Vec::from_iter(earlier.0.iter().filter(|(name, _)| is_gone(name)));
        gone.sort_unstable_by_key(|(name, _)| *name);
        // The new names of each file: several if it got further links.
        let mut new_names = HashMap::<u64, Vec<&OsString>>::new();
        for (name, entry) in new.iter().rev() {
            new_names.entry(entry.file).or_default().push(name);
        }
        let mut moved = HashSet::new();
        let mut changes = Vec::with_capacity(gone.len() + new.len());
        for (name, entry) in gone {
            let change = |kind, name: &OsString| Change {
                kind,
                name: name.clone(),
                is_directory: entry.is_directory,
            };
            match new_names.get_mut(&entry.file).and_then(Vec::pop) {
                Some(to) => {
                    let number = renames.get().wrapping_add(1);
                    renames.set(number);
                    moved.insert(to);
                    changes.push(change(WatchKind::MovedFrom(number), name));
                    changes.push(change(WatchKind::MovedTo(number), to));
                }
                None => changes.push(change(WatchKind::Removed, name)),
            }
        }
        new.retain(|(name, _)| !moved.contains(name));
        changes.extend(new.into_iter().map(|(name, entry)| Change {
            kind: WatchKind::Created,
            name: name.clone(),
            is_directory: entry.is_directory,
        }));
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, Entries};
    use crate::sys::watch::WatchKind;
    use std::cell::Cell;

    fn entries(list: &[(&str, u64)]) -> Entries {
        let mut entries = Entries::default();
        for &(name, file) in list {
            entries.insert(name.into(), file, name.ends_with('/'));
        }
        entries
    }

    fn changes(from: &[(&str, u64)], to: &[(&str, u64)]) -> Vec<(WatchKind, String, bool)> {
        let plain = |change: Change| {
            let name = change.name.into_string().unwrap();
            (change.kind, name, change.is_directory)
        };
        let renames = Cell::new(0);
        let found = entries(from).update(entries(to), &renames);
        found.into_iter().map(plain).collect()
    }

    #[test]
    fn created_and_removed_entries_are_reported_by_name() {
        let found = changes(
            &[("b", 1), ("kept", 2)],
            &[("kept", 2), ("c/", 4), ("a", 3)],
        );
        let expected = [
            (WatchKind::Removed, "b".to_owned(), false),
            (WatchKind::Created, "a".to_owned(), false),
            (WatchKind::Created, "c/".to_owned(), true),
        ];
        assert_eq!(found, expected);
        assert_eq!(changes(&[("a", 1)], &[("a", 1)]), []);
    }

    #[test]
    fn a_file_with_another_name_was_renamed() {
        let found = changes(&[("a", 1), ("b", 2)], &[("c", 1), ("b", 2)]);
        let expected = [
            (WatchKind::MovedFrom(1), "a".to_owned(), false),
            (WatchKind::MovedTo(1), "c".to_owned(), false),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_overwritten_entry_is_not_removed() {
        // `rename("new", "old")`, and a file that was created anew under its name.
        let found = changes(&[("new", 2), ("old", 1)], &[("old", 2)]);
        let expected = [
            (WatchKind::MovedFrom(1), "new".to_owned(), false),
            (WatchKind::MovedTo(1), "old".to_owned(), false),
        ];
        assert_eq!(found, expected);
        let found = changes(&[("a", 1)], &[("a", 5)]);
        assert_eq!(found, [(WatchKind::Created, "a".to_owned(), false)]);
    }

    #[test]
    fn renames_have_different_numbers() {
        let renames = Cell::new(0);
        let mut list = entries(&[("a", 1)]);
        list.update(entries(&[("b", 1)]), &renames);
        let second = list.update(entries(&[("c", 1)]), &renames);
        assert_eq!(second[0].kind, WatchKind::MovedFrom(2));
    }
}
