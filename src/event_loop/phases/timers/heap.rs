//! The timer heap, ordered by deadline, then by insertion. An entry is removed without a search.
//!
//! It is a four-ary heap of small entries and a slab with the position of each entry. Four children
//! share a cache line or two, and the tree is half as deep as a binary one. A pass first moves the
//! due entries to a *ready* list and then takes them from there, so an entry that is added
//! during the pass waits for the next one.
// Rules of tests/LIBUV.md: R53.

use std::collections::VecDeque;

use slab::Slab;

const ARITY: usize = 4;

/// The position of an entry that is in the ready list.
const READY: u32 = u32::MAX;

pub(crate) struct TimerHeap<P> {
    heap: Vec<Entry>,
    ready: VecDeque<Entry>,
    slots: Slab<Slot<P>>,
    next_sequence: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    deadline: u64,
    sequence: u64,
    slot: u32,
}

struct Slot<P> {
    sequence: u64,
    position: u32,
    /// A flag of the owner of the heap. It shares a word with the position, so it takes no space.
    mark: bool,
    payload: P,
}

/// An entry that [`TimerHeap::remove`] has removed.
pub(crate) struct Removed<P> {
    pub(crate) payload: P,
    /// Whether it was in the heap; otherwise in the ready list.
    pub(crate) was_in_heap: bool,
}

/// The key of one insertion. The key of an entry that fired or was removed matches no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerKey {
    sequence: u64,
    slot: u32,
}

impl Entry {
    /// Returns deadline and number as one integer: one comparison is cheaper than two.
    #[inline]
    fn rank(&self) -> u128 {
        u128::from(self.deadline) << 64 | u128::from(self.sequence)
    }

    #[inline]
    fn is_before(&self, other: &Self) -> bool {
        self.rank() < other.rank()
    }

    fn key(&self) -> TimerKey {
        TimerKey {
            sequence: self.sequence,
            slot: self.slot,
        }
    }
}

impl<P> TimerHeap<P> {
    pub(crate) fn new() -> Self {
        Self {
            heap: Vec::new(),
            ready: VecDeque::new(),
            slots: Slab::new(),
            next_sequence: 0,
        }
    }

    /// Returns whether both the heap and the ready list are empty.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty() && self.ready.is_empty()
    }

    /// Adds an entry with a mark, behind the entries of equal deadline.
    pub(crate) fn insert(&mut self, deadline: u64, payload: P, mark: bool) -> TimerKey {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let slot = self.slots.insert(Slot {
            sequence,
            position: READY,
            mark,
            payload,
        });
        let slot = u32::try_from(slot).expect("fewer than 2^32 timers are armed at once");
        let entry = Entry {
            deadline,
            sequence,
            slot,
        };
        self.push(entry);
        entry.key()
    }

    /// Removes an entry from the heap or the ready list.
    pub(crate) fn remove(&mut self, key: TimerKey) -> Option<Removed<P>> {
        let slot = self.slots.get(key.slot as usize)?;
        if slot.sequence != key.sequence {
            return None;
        }
        let position = slot.position;
        let payload = self.slots.remove(key.slot as usize).payload;
        // The ready list keeps its item; `pop_ready` skips it, since its key matches no slot.
        let was_in_heap = position != READY;
        if was_in_heap {
            self.remove_at(position as usize);
        }
        Some(Removed {
            payload,
            was_in_heap,
        })
    }

    pub(crate) fn get_mut(&mut self, key: TimerKey) -> Option<&mut P> {
        self.slot_mut(key).map(|slot| &mut slot.payload)
    }

    fn slot_mut(&mut self, key: TimerKey) -> Option<&mut Slot<P>> {
        let slot = self.slots.get_mut(key.slot as usize)?;
        (slot.sequence == key.sequence).then_some(slot)
    }

    /// Sets the mark of an entry. Returns `true` if that was a change and the entry is in the heap,
    /// not in the ready list.
    pub(crate) fn set_mark(&mut self, key: TimerKey, mark: bool) -> bool {
        self.slot_mut(key).is_some_and(|slot| {
            std::mem::replace(&mut slot.mark, mark) != mark && slot.position != READY
        })
    }

    /// Returns the earliest deadline in the heap.
    pub(crate) fn first(&self) -> Option<(u64, &P)> {
        let first = self.heap.first()?;
        Some((first.deadline, &self.slots[first.slot as usize].payload))
    }

    /// Returns the deadline, payload and mark of every entry, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &P, bool)> {
        let all = self.heap.iter().chain(&self.ready);
        all.filter_map(|entry| {
            let slot = self.slots.get(entry.slot as usize)?;
            let is_there = slot.sequence == entry.sequence;
            is_there.then_some((entry.deadline, &slot.payload, slot.mark))
        })
    }

    /// Moves the entries with a deadline up to `now` to the ready list, in order.
    pub(crate) fn collect_due(&mut self, now: u64, mut collected: impl FnMut(&P, bool)) {
        while let Some(&entry) = self.heap.first() {
            if entry.deadline > now {
                break;
            }
            self.remove_at(0);
            let slot = &mut self.slots[entry.slot as usize];
            slot.position = READY;
            collected(&slot.payload, slot.mark);
            self.ready.push_back(entry);
        }
    }

    /// Returns the next entry of the ready list that was not removed.
    pub(crate) fn pop_ready(&mut self) -> Option<P> {
        while let Some(entry) = self.ready.pop_front() {
            if self.get_mut(entry.key()).is_some() {
                return Some(self.slots.remove(entry.slot as usize).payload);
            }
        }
        None
    }

    /// Moves the rest of the ready list back to the heap. Each entry keeps its deadline and its
    /// number.
    pub(crate) fn put_back_ready(&mut self, mut put_back: impl FnMut(&P, bool)) {
        while let Some(entry) = self.ready.pop_front() {
            if let Some(slot) = self.slot_mut(entry.key()) {
                put_back(&slot.payload, slot.mark);
                self.push(entry);
            }
        }
    }

    /// Removes all entries.
    pub(crate) fn drain(&mut self) -> Vec<P> {
        self.heap.clear();
        self.ready.clear();
        self.slots.drain().map(|slot| slot.payload).collect()
    }

    fn push(&mut self, entry: Entry) {
        self.heap.push(entry);
        self.sift_up(self.heap.len() - 1, entry);
    }

    fn remove_at(&mut self, position: usize) {
        let last = self.heap.pop().expect("the position is in the heap");
        if position == self.heap.len() {
            return;
        }
        // The last entry fills the gap if it belongs there or above: the usual case when a timer is
        // cancelled, since most entries are near the leaves.
        let is_leaf = position * ARITY + 1 >= self.heap.len();
        if is_leaf {
            self.sift_up(position, last);
        } else {
            // Otherwise the gap sinks to a leaf first: the last entry usually belongs near the
            // bottom, so a comparison with it on every level would be wasted.
            let leaf = self.sink(position);
            self.sift_up(leaf, last);
        }
    }

    /// Moves `entry` from the gap at `position` towards the root.
    fn sift_up(&mut self, mut position: usize, entry: Entry) {
        while position > 0 {
            let parent = (position - 1) / ARITY;
            let above = self.heap[parent];
            if !entry.is_before(&above) {
                break;
            }
            self.place(position, above);
            position = parent;
        }
        self.place(position, entry);
    }

    /// Fills the gap at `position` with the least child, repeats that for the child's place, and
    /// returns the leaf where the gap ends.
    fn sink(&mut self, mut position: usize) -> usize {
        loop {
            let first = position * ARITY + 1;
            let child = if let Some(children) = self.heap.get(first..first + ARITY) {
                // Two pairs are compared, then the winners: this halves the dependency chain of a
                // scan.
                let left = usize::from(children[1].is_before(&children[0]));
                let right = 2 + usize::from(children[3].is_before(&children[2]));
                let right_wins = children[right].is_before(&children[left]);
                first + if right_wins { right } else { left }
            } else {
                let rest = first..self.heap.len();
                match rest.min_by_key(|&child| self.heap[child].rank()) {
                    Some(child) => child,
                    None => return position,
                }
            };
            let least = self.heap[child];
            self.place(position, least);
            position = child;
        }
    }

    fn place(&mut self, position: usize, entry: Entry) {
        self.heap[position] = entry;
        self.slots[entry.slot as usize].position = position as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::{TimerHeap, TimerKey};

    /// A small random generator. The test needs variety, not quality.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % bound
        }
    }

    fn remove(heap: &mut TimerHeap<u64>, key: TimerKey) -> Option<u64> {
        heap.remove(key).map(|removed| removed.payload)
    }

    fn drain_due(heap: &mut TimerHeap<u64>, now: u64) -> Vec<u64> {
        heap.collect_due(now, |_, _| ());
        std::iter::from_fn(|| heap.pop_ready()).collect()
    }

    #[test]
    fn equal_deadlines_keep_their_order() {
        let mut heap = TimerHeap::new();
        for payload in 0..100 {
            heap.insert(7, payload, true);
        }
        assert_eq!(drain_due(&mut heap, 6), []);
        assert_eq!(drain_due(&mut heap, 7), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn agrees_with_a_sorted_list_under_random_use() {
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        for _ in 0..200 {
            let mut heap = TimerHeap::new();
            // Pairs of deadline and payload. Payloads ascend in the order of insertion.
            let mut model: Vec<(u64, u64)> = Vec::new();
            let mut keys = Vec::new();
            for payload in 0..300 {
                let deadline = random.below(50);
                keys.push((heap.insert(deadline, payload, true), payload));
                model.push((deadline, payload));
                if random.below(3) == 0 {
                    let index = random.below(keys.len() as u64) as usize;
                    let (key, payload) = keys.swap_remove(index);
                    assert_eq!(remove(&mut heap, key), Some(payload));
                    assert_eq!(remove(&mut heap, key), None, "a key works once");
                    model.retain(|&(_, other)| other != payload);
                }
            }
            model.sort_unstable();
            let due = random.below(60);
            let split = model.partition_point(|&(deadline, _)| deadline <= due);
            let rest = model.split_off(split);
            let expected: Vec<_> = model.into_iter().map(|(_, payload)| payload).collect();
            assert_eq!(drain_due(&mut heap, due), expected);
            let expected: Vec<_> = rest.into_iter().map(|(_, payload)| payload).collect();
            assert_eq!(drain_due(&mut heap, 100), expected);
            assert!(heap.first().is_none());
        }
    }

    #[test]
    fn what_is_removed_from_the_ready_list_is_not_popped() {
        let mut heap = TimerHeap::new();
        let first = heap.insert(1, 1, true);
        let second = heap.insert(1, 2, true);
        heap.collect_due(1, |_, _| ());
        assert_eq!(remove(&mut heap, second), Some(2));
        let reused = heap.insert(1, 3, true);
        assert_eq!(heap.pop_ready(), Some(1));
        assert_eq!(heap.pop_ready(), None);
        assert_eq!(remove(&mut heap, first), None);
        assert_eq!(remove(&mut heap, reused), Some(3));
    }

    #[test]
    fn what_is_put_back_keeps_its_place() {
        let mut heap = TimerHeap::new();
        for payload in 0..4 {
            heap.insert(5, payload, true);
        }
        heap.collect_due(5, |_, _| ());
        assert_eq!(heap.pop_ready(), Some(0));
        heap.insert(5, 4, true);
        let mut back = Vec::new();
        heap.put_back_ready(|&payload, _| back.push(payload));
        assert_eq!(back, [1, 2, 3]);
        assert_eq!(drain_due(&mut heap, 5), [1, 2, 3, 4]);
    }

    /// A ready entry is no longer counted by its owner.
    #[test]
    fn a_mark_is_seen_to_change_in_the_heap_only() {
        let mut heap = TimerHeap::new();
        let (due, later) = (heap.insert(1, 1, true), heap.insert(2, 2, true));
        let mut marks = Vec::new();
        heap.collect_due(1, |&payload, mark| marks.push((payload, mark)));
        assert!(!heap.set_mark(due, false), "it is ready");
        assert!(!heap.set_mark(later, true), "it was so before");
        assert!(heap.set_mark(later, false));
        heap.put_back_ready(|&payload, mark| marks.push((payload, mark)));
        assert!(heap.set_mark(due, true));
        assert_eq!(marks, [(1, true), (1, false)]);
        assert_eq!(remove(&mut heap, later), Some(2));
        assert!(!heap.set_mark(later, true), "it is gone");
    }
}
