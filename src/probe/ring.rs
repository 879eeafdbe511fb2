//! A ring of records: the newest ones, in a fixed amount of memory.

use super::record::Record;

/// Keeps the last records. It allocates once, when it is created.
pub(crate) struct Ring {
    records: Vec<Record>,
    /// A power of two.
    capacity: usize,
    /// The number of records ever written; its low bits are the position of the next one.
    written: usize,
}

impl Ring {
    /// Creates a ring for `capacity` records, rounded up to a power of two.
    pub(crate) fn new(capacity: usize) -> Self {
        let capacity = capacity.max(1).next_power_of_two();
        Self {
            records: Vec::with_capacity(capacity),
            capacity,
            written: 0,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, record: Record) {
        let at = self.written & (self.capacity - 1);
        match self.records.get_mut(at) {
            Some(oldest) => *oldest = record,
            None => self.records.push(record),
        }
        self.written += 1;
    }

    /// Returns whether the next record is the first of another round, or the ring has just begun.
    #[inline]
    pub(crate) fn is_at_start(&self) -> bool {
        self.written & (self.capacity - 1) == 0
    }

    /// Returns the records, oldest first.
    pub(crate) fn to_vec(&self) -> Vec<Record> {
        let at = self.written & (self.capacity - 1);
        let (newer, older) = self.records.split_at(at.min(self.records.len()));
        [older, newer].concat()
    }

    /// Returns the records, newest first.
    pub(crate) fn newest_first(&self) -> impl Iterator<Item = &Record> {
        let at = self.written & (self.capacity - 1);
        let (newer, older) = self.records.split_at(at.min(self.records.len()));
        newer.iter().rev().chain(older.iter().rev())
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{Record, What};
    use super::Ring;

    fn starts(ring: &Ring) -> Vec<u64> {
        let records = ring.to_vec();
        let mut backwards: Vec<_> = ring.newest_first().map(|record| record.start).collect();
        backwards.reverse();
        let starts: Vec<_> = records.iter().map(|record| record.start).collect();
        assert_eq!(starts, backwards);
        starts
    }

    #[test]
    fn a_ring_keeps_the_newest_records_in_their_order() {
        let mut ring = Ring::new(5);
        assert!(starts(&ring).is_empty());
        for start in 0..8 {
            ring.push(Record::new(What::Tick, start, start + 1));
        }
        assert!(ring.is_at_start(), "five is rounded up to eight");
        assert_eq!(starts(&ring), [0, 1, 2, 3, 4, 5, 6, 7]);
        for start in 8..11 {
            ring.push(Record::new(What::Tick, start, start + 1));
        }
        assert_eq!(starts(&ring), [3, 4, 5, 6, 7, 8, 9, 10]);
        assert!(!ring.is_at_start());
    }

    #[test]
    fn a_record_is_small() {
        assert_eq!(size_of::<Record>(), 32);
    }
}
