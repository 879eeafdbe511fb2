//! The timer heap: ordered by deadline, then by start; any entry is removed without a search.
//!
//! A four-ary heap of small entries beside a slab that knows each entry's position. Four children share a
//! cache line or two, and the tree is half as deep as a binary one. A pass first moves all that is due to a
//! *ready* list (R53) and then takes from there, so what is added meanwhile waits for the next pass.

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
    /// What the owner of the heap notes about the entry; beside the position it costs no room.
    mark: bool,
    payload: P,
}

/// What [`TimerHeap::remove`] found.
pub(crate) struct Removed<P> {
    pub(crate) payload: P,
    /// It was in the heap, not in the ready list.
    pub(crate) was_in_heap: bool,
}

/// Names one insertion; a key of something that fired or was removed matches nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimerKey {
    sequence: u64,
    slot: u32,
}

impl Entry {
    /// One number to compare by; cheaper than two comparisons.
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

    /// Whether there is nothing, neither in the heap nor in the ready list.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty() && self.ready.is_empty()
    }

    /// Adds an entry with a mark behind all others of the same deadline.
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

    /// Takes an entry out, from the heap or from the ready list.
    pub(crate) fn remove(&mut self, key: TimerKey) -> Option<Removed<P>> {
        let slot = self.slots.get(key.slot as usize)?;
        if slot.sequence != key.sequence {
            return None;
        }
        let position = slot.position;
        let payload = self.slots.remove(key.slot as usize).payload;
        // An entry of the ready list stays there; its key matches nothing any more.
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

    /// Changes the mark of an entry. `true`: it was the opposite until now, and the entry is in the heap, not in the ready
    /// list.
    pub(crate) fn set_mark(&mut self, key: TimerKey, mark: bool) -> bool {
        self.slot_mut(key).is_some_and(|slot| {
            std::mem::replace(&mut slot.mark, mark) != mark && slot.position != READY
        })
    }

    /// The earliest deadline in the heap.
    pub(crate) fn first(&self) -> Option<(u64, &P)> {
        let first = self.heap.first()?;
        Some((first.deadline, &self.slots[first.slot as usize].payload))
    }

    /// Everything, due or not, in no order: deadlines, payloads, marks.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &P, bool)> {
        let all = self.heap.iter().chain(&self.ready);
        all.filter_map(|entry| {
            let slot = self.slots.get(entry.slot as usize)?;
            let is_there = slot.sequence == entry.sequence;
            is_there.then_some((entry.deadline, &slot.payload, slot.mark))
        })
    }

    /// Moves everything with a deadline up to `now` to the ready list, in order.
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

    /// The next entry of the ready list that was not removed meanwhile.
    pub(crate) fn pop_ready(&mut self) -> Option<P> {
        while let Some(entry) = self.ready.pop_front() {
            if self.get_mut(entry.key()).is_some() {
                return Some(self.slots.remove(entry.slot as usize).payload);
            }
        }
        None
    }

    /// Returns what is left of the ready list to the heap, each with its old deadline and place.
    pub(crate) fn put_back_ready(&mut self, mut put_back: impl FnMut(&P, bool)) {
        while let Some(entry) = self.ready.pop_front() {
            if let Some(slot) = self.slot_mut(entry.key()) {
                put_back(&slot.payload, slot.mark);
                self.push(entry);
            }
        }
    }

    /// Takes everything out.
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
        // The last entry takes the free place, if it belongs there or above: the usual case when a timer is cancelled, as
        // most are near the leaves.
        let is_leaf = position * ARITY + 1 >= self.heap.len();
        if is_leaf {
            self.sift_up(position, last);
        } else {
            // Else the free place goes all the way down first: the last entry mostly belongs to the bottom, and comparing with
            // it on every level would be wasted.
            let leaf = self.sink(position);
            self.sift_up(leaf, last);
        }
    }

    /// Moves `entry` from the free `position` towards the root.
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

    /// Fills the free `position` with the least of its children, the place of that likewise, and so on; returns the leaf that
    /// is free in the end.
    fn sink(&mut self, mut position: usize) -> usize {
        loop {
            let first = position * ARITY + 1;
            let child = if let Some(children) = self.heap.get(first..first + ARITY) {
                // Two pairs, then the winners: half the dependencies of a scan.
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

    /// A small generator: the test needs variety, not quality.
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
            // (deadline, payload), payloads ascending: the order of insertion.
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

    /// What is ready has left the books of its owner already.
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
