//! Finds the places of names in a list of headers.

use std::collections::HashMap;

/// A list of this length is searched from its start. Most heads are shorter.
const FEW: usize = 32;

/// The places of the names of a long list, in lower case. The keys of its hashes are random, so
/// that a peer cannot choose names that collide.
#[derive(Clone, Default)]
pub(crate) struct Names {
    #[expect(
        clippy::box_collection,
        reason = "each message has two lists, and few are long"
    )]
    places: Option<Box<HashMap<Box<str>, usize>>>,
}

impl Names {
    /// Returns the place of a name, in any case, in a list of `len` names. `name_at` returns them.
    pub(crate) fn find<'a>(
        &self,
        name: &str,
        len: usize,
        name_at: impl Fn(usize) -> &'a str,
    ) -> Option<usize> {
        match &self.places {
            None => (0..len).find(|place| name_at(*place).eq_ignore_ascii_case(name)),
            Some(places) if name.bytes().any(|byte| byte.is_ascii_uppercase()) => {
                places.get(&*name.to_ascii_lowercase()).copied()
            }
            Some(places) => places.get(name).copied(),
        }
    }

    /// A name was added at the end of a list, which has `len` names now.
    pub(crate) fn added<'a>(&mut self, len: usize, name_at: impl Fn(usize) -> &'a str) {
        let known = match &self.places {
            None if len <= FEW => return,
            None => 0,
            Some(_) => len - 1,
        };
        let places = self.places.get_or_insert_default();
        let new = (known..len).map(|place| (name_at(place).to_ascii_lowercase().into(), place));
        places.extend(new);
    }

    /// The name at a place was removed from the list.
    pub(crate) fn removed(&mut self, place: usize) {
        if let Some(places) = &mut self.places {
            places.retain(|_, known| *known != place);
            let behind = places.values_mut().filter(|known| **known > place);
            behind.for_each(|known| *known -= 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Adds names as the lists do, and returns how many names were looked at.
    fn looks_for(names: &[String]) -> usize {
        let looks = Cell::new(0);
        let mut index = Names::default();
        let name_at = |place: usize| {
            looks.set(looks.get() + 1);
            names[place].as_str()
        };
        for (len, name) in names.iter().enumerate() {
            assert_eq!(index.find(name, len, name_at), None);
            index.added(len + 1, name_at);
        }
        for (place, name) in names.iter().enumerate() {
            assert_eq!(index.find(name, names.len(), name_at), Some(place));
        }
        looks.get()
    }

    #[test]
    fn the_work_is_linear_in_the_number_of_names() {
        let names = |count: usize| (0..count).map(|n| format!("X-{n}")).collect::<Vec<_>>();
        let (few, many) = (looks_for(&names(1_000)), looks_for(&names(10_000)));
        assert!(many <= few * 10, "{few} looks for 1,000, {many} for 10,000");
    }

    #[test]
    fn a_name_is_found_in_any_case_also_after_a_removal() {
        for count in [3, FEW, FEW + 1, 3 * FEW] {
            let mut names: Vec<_> = (0..count).map(|n| format!("Name-{n}")).collect();
            let mut index = Names::default();
            for len in 1..=count {
                index.added(len, |place| names[place].as_str());
            }
            names.remove(1);
            index.removed(1);
            for (place, name) in names.iter().enumerate() {
                let name_at = |place: usize| names[place].as_str();
                let upper = name.to_ascii_uppercase();
                assert_eq!(index.find(&upper, names.len(), name_at), Some(place));
                assert_eq!(index.find("name-1", names.len(), name_at), None);
            }
        }
    }
}
