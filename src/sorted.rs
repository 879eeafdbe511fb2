//! A map in the order of its keys, as a sorted vector. It suits keys that grow, such as the numbers
//! of handles in the order of creation: these are added at the end.
//!
//! The code of a `BTreeMap` is forty times as much for each type of key and value, and every
//! program that uses the crate compiles it: with `BTreeMap`s the crate takes 18 % more CPU time in
//! debug (6.5 s in place of 5.5) and 20 % more in release (18.8 s in place of 15.6).

/// Values by key, in the order of the keys.
pub(crate) struct SortedMap<K, V> {
    /// A removed value leaves a hole behind, until more than half of the entries are holes: so many
    /// removals take no more than constant time each, apart from the search.
    entries: Vec<(K, Option<V>)>,
    /// The number of values.
    len: usize,
}

/// A map that had room for more than this releases its memory when it is empty.
const LARGE: usize = 64;

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> SortedMap<K, V> {
    pub(crate) const fn new() -> Self {
        Self {
            entries: Vec::new(),
            len: 0,
        }
    }

    #[cfg(any(test, feature = "fs", feature = "signal"))]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the values in the order of their keys.
    pub(crate) fn into_values(self) -> impl DoubleEndedIterator<Item = V> {
        self.entries.into_iter().filter_map(|(_, value)| value)
    }
}

impl<K: Copy + Ord, V> SortedMap<K, V> {
    /// Returns the place of a key, or the place where it belongs.
    fn place(&self, key: K) -> Result<usize, usize> {
        match self.entries.last() {
            Some(&(last, _)) if last >= key => {
                let compare = |entry: &(K, Option<V>)| entry.0.cmp(&key);
                self.entries.binary_search_by(compare)
            }
            _ => Err(self.entries.len()),
        }
    }

    /// Adds a value, and returns the one that it replaces.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let replaced = match self.place(key) {
            Ok(place) => self.entries[place].1.replace(value),
            Err(place) => {
                self.entries.insert(place, (key, Some(value)));
                None
            }
        };
        self.len += usize::from(replaced.is_none());
        replaced
    }

    pub(crate) fn get(&self, key: K) -> Option<&V> {
        self.entries[self.place(key).ok()?].1.as_ref()
    }

    #[cfg(any(test, feature = "signal"))]
    pub(crate) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let place = self.place(key).ok()?;
        self.entries[place].1.as_mut()
    }

    pub(crate) fn remove(&mut self, key: K) -> Option<V> {
        let place = self.place(key).ok()?;
        let removed = self.entries[place].1.take()?;
        self.len -= 1;
        if self.len == 0 && self.entries.capacity() > LARGE {
            self.entries = Vec::new();
        } else if self.len <= self.entries.len() / 2 {
            self.entries.retain(|(_, value)| value.is_some());
        }
        Some(removed)
    }

    /// Returns the keys and values in the order of the keys, from `first` on.
    pub(crate) fn starting_at(&self, first: K) -> impl Iterator<Item = (K, &V)> {
        let (Ok(start) | Err(start)) = self.place(first);
        pairs(&self.entries[start..])
    }

    /// Returns the keys and values in the order of the keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        pairs(&self.entries)
    }
}

impl<V> FromIterator<(usize, V)> for SortedMap<usize, V> {
    /// Creates a map of keys in any order. Of several values with one key, the last one stays.
    fn from_iter<I: IntoIterator<Item = (usize, V)>>(values: I) -> Self {
        let by_number = |(key, value)| (key as u64, (key, value));
        let mut map = Self::new();
        for (key, value) in sorted_by_number(values.into_iter().map(by_number)) {
            map.insert(key, value);
        }
        map
    }
}

fn pairs<K: Copy, V>(entries: &[(K, Option<V>)]) -> impl Iterator<Item = (K, &V)> {
    let pairs = entries.iter();
    pairs.filter_map(|(key, value)| value.as_ref().map(|value| (*key, value)))
}

/// Returns values in the order of their numbers; those with one number stay in their order.
pub(crate) fn sorted_by_number<T>(values: impl IntoIterator<Item = (u64, T)>) -> Vec<T> {
    let (mut order, mut sorted) = (Vec::new(), Vec::new());
    for (place, (number, value)) in values.into_iter().enumerate() {
        order.push((number, place));
        sorted.push(Some(value));
    }
    sort(&mut order);
    let places = order.into_iter();
    places
        .filter_map(|(_, place)| sorted[place].take())
        .collect()
}

/// The code of a sort is long: one for all types.
fn sort(numbers: &mut [(u64, usize)]) {
    numbers.sort_unstable();
}

#[cfg(test)]
mod tests {
    use super::{SortedMap, sorted_by_number};
    use std::collections::BTreeMap;

    fn listed(map: &SortedMap<u32, u32>) -> Vec<(u32, u32)> {
        map.iter().map(|(key, &value)| (key, value)).collect()
    }

    /// Compares the map with std's, after each of many steps that look random.
    #[test]
    fn it_does_what_std_does() {
        let (mut map, mut expected) = (SortedMap::new(), BTreeMap::new());
        let mut seed = 7_u32;
        for step in 0..20_000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Growing keys and others, and times of more removals than additions.
            let key = if seed & 0x1000 == 0 { step } else { seed >> 24 };
            let removes = (step / 1_000) % 2 == 1;
            if removes || seed & 0x10_0000 == 0 {
                let key = expected.range(key..).next().map_or(key, |(&key, _)| key);
                assert_eq!(map.remove(key), expected.remove(&key));
            } else {
                assert_eq!(map.insert(key, step), expected.insert(key, step));
            }
            assert_eq!(map.get(key), expected.get(&key));
            assert_eq!(map.get_mut(key), expected.get_mut(&key));
            assert_eq!(map.is_empty(), expected.is_empty());
            let next = map.starting_at(key).next();
            let expected_next = expected.range(key..).next();
            assert_eq!(next, expected_next.map(|(&key, value)| (key, value)));
        }
        assert_eq!(listed(&map), Vec::from_iter(expected.clone()));
        assert!(map.into_values().eq(expected.into_values()));
    }

    #[test]
    fn values_are_sorted_by_number_and_otherwise_stay_in_order() {
        let values = [(2, "c"), (1, "a"), (2, "d"), (1, "b")];
        assert_eq!(sorted_by_number(values), ["a", "b", "c", "d"]);
    }

    #[test]
    fn of_several_values_with_one_key_the_last_stays() {
        let map: SortedMap<usize, _> = [(2, "a"), (1, "b"), (2, "c")].into_iter().collect();
        assert!(map.iter().eq([(1, &"b"), (2, &"c")]));
    }

    #[test]
    fn an_empty_map_releases_its_memory() {
        let mut map: SortedMap<u32, u32> = (0..1_000).fold(SortedMap::new(), |mut map, key| {
            map.insert(key, key);
            map
        });
        for key in 0..1_000 {
            map.remove(key);
        }
        assert!(map.is_empty() && map.entries.capacity() == 0);
    }
}
