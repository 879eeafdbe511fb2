//! A ring of records: the newest ones, in a fixed amount of memory.
// Marks: a record is written to its place (row `self_wake/recorded`).

use std::cell::Cell;

use super::record::{Record, What};

/// Keeps the last records. It allocates once, when it is created. It is written in rounds, each
/// from the first place to the last.
pub(crate) struct Ring {
    /// As many as the ring keeps.
    records: Box<[Cell<Record>]>,
    /// The place of the next record; the number of places at the end of a round.
    next: Cell<usize>,
    /// Whether a round has ended: the places from the next one on have older records.
    is_full: Cell<bool>,
}

impl Ring {
    /// Creates a ring for `capacity` records, rounded up to a power of two.
    pub(crate) fn new(capacity: usize) -> Self {
        let unwritten = Cell::new(Record::new(What::Wait, 0, 0));
        Self {
            records: vec![unwritten; capacity.max(1).next_power_of_two()].into(),
            next: Cell::new(0),
            is_full: Cell::new(false),
        }
    }

    /// Writes a record over the oldest one. Returns `false` if the round is over, and then nothing
    /// is written.
    #[inline(always)]
    pub(crate) fn push(&self, record: Record) -> bool {
        let next = self.next.get();
        let Some(oldest) = self.records.get(next) else {
            return false;
        };
        oldest.set(record);
        self.next.set(next + 1);
        true
    }

    /// Begins another round.
    pub(crate) fn begin_round(&self) {
        self.next.set(0);
        self.is_full.set(true);
    }

    /// Returns the records, newest first.
    pub(crate) fn newest_first(&self) -> impl DoubleEndedIterator<Item = Record> {
        let (newer, older) = self.records.split_at(self.next.get());
        let older = if self.is_full.get() { older } else { &[] };
        let newest = newer.iter().rev().chain(older.iter().rev());
        newest.map(Cell::get)
    }

    /// Returns the records, oldest first.
    pub(crate) fn to_vec(&self) -> Vec<Record> {
        self.newest_first().rev().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{Record, What};
    use super::Ring;

    fn starts(ring: &Ring) -> Vec<u64> {
        let mut backwards: Vec<_> = ring.newest_first().map(|record| record.start).collect();
        backwards.reverse();
        let starts: Vec<_> = ring.to_vec().iter().map(|record| record.start).collect();
        assert_eq!(starts, backwards);
        starts
    }

    #[test]
    fn a_ring_keeps_the_newest_records_in_their_order() {
        let ring = Ring::new(5);
        assert!(starts(&ring).is_empty());
        let push = |start| ring.push(Record::new(What::Tick, start, start + 1));
        assert!((0..8).all(push), "five is rounded up to eight");
        assert_eq!(starts(&ring), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert!(!push(8), "the round is over");
        ring.begin_round();
        assert!((8..11).all(push));
        assert_eq!(starts(&ring), [3, 4, 5, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn a_ring_that_is_not_full_has_what_was_written() {
        let ring = Ring::new(8);
        assert!((0..3).all(|start| ring.push(Record::new(What::Tick, start, start))));
        assert_eq!(starts(&ring), [0, 1, 2]);
    }

    #[test]
    fn a_record_is_small() {
        assert!(size_of::<Record>() <= 32);
    }
}
