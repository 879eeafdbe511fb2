//! Maps and sets whose keys are numbers or addresses that the crate itself chose.
//!
//! No input of a program can make many such keys collide, so they need no random hash, whose code
//! every program would carry.

use std::collections::HashMap;
#[cfg(feature = "probe")]
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by a number or an address.
pub type NumberedMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// A set of numbers.
#[cfg(feature = "probe")]
pub(crate) type NumberedSet<K> = HashSet<K, BuildHasherDefault<NumberHasher>>;

/// Hashes one number by one multiplication.
#[derive(Debug, Default)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0 ^ u64::from(byte));
        }
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        // The odd number nearest to 2^64 divided by the golden ratio.
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    #[inline]
    fn finish(&self) -> u64 {
        // The high bits are mixed best, and the map uses both ends of the hash.
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::NumberHasher;
    use std::collections::HashSet;
    use std::hash::{Hash, Hasher};

    fn hash(key: impl Hash) -> u64 {
        let mut hasher = NumberHasher::default();
        key.hash(&mut hasher);
        hasher.finish()
    }

    /// A map takes the place of a key from the low bits of its hash, and a tag of 7 bits from the
    /// high ones.
    #[test]
    fn numbers_and_addresses_spread_over_both_ends_of_the_hash() {
        let numbers = (0..1024_u32).map(hash);
        let addresses =
            (0..1024_usize).map(|number| hash((0x7f00_0000 + number * 64) as *const ()));
        for hashes in [numbers.collect::<Vec<_>>(), addresses.collect()] {
            let places: HashSet<_> = hashes.iter().map(|hash| hash % 2048).collect();
            assert!(places.len() > 600, "{} of 1024 places", places.len());
            let tags: HashSet<_> = hashes.iter().map(|hash| hash >> 57).collect();
            assert!(tags.len() > 100, "{} of 128 tags", tags.len());
        }
    }
}
