use super::{FEW, LARGE, TimerHeap, TimerKey};

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

fn pop<P: Default>(heap: &mut TimerHeap<P>) -> Option<P> {
    heap.pop_ready().map(|(_, payload)| payload)
}

/// Returns whether no entry is in the heap and no pass is under way.
fn is_empty<P>(heap: &TimerHeap<P>) -> bool {
    heap.heap.is_empty() && heap.ready.is_empty()
}

fn drain_due(heap: &mut TimerHeap<u64>, now: u64) -> Vec<u64> {
    heap.collect_due(now, |_, _, _| ());
    std::iter::from_fn(|| pop(heap)).collect()
}

/// Checks that each entry is behind the one above it and that its slot knows its position.
fn check_order(heap: &TimerHeap<u64>) {
    for (position, entry) in heap.heap.iter().enumerate() {
        let above = heap.heap[position.saturating_sub(1) / super::ARITY];
        assert!(above <= *entry, "at {position}");
        assert_eq!(heap.slots[entry.slot()].position as usize, position);
    }
}

#[test]
fn equal_deadlines_keep_their_order() {
    let mut heap = TimerHeap::default();
    for payload in 0..100 {
        heap.insert(7, payload, true);
    }
    assert!(drain_due(&mut heap, 6).is_empty());
    assert_eq!(drain_due(&mut heap, 7), (0..100).collect::<Vec<_>>());
    assert!(is_empty(&heap));
}

#[test]
fn agrees_with_a_sorted_list_under_random_use() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    for round in 0..200 {
        let mut heap = TimerHeap {
            // The numbers run out on the way.
            next_sequence: u32::MAX - 2 * round,
            ..TimerHeap::default()
        };
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
                model.retain(|&(_, other)| other != payload);
            }
        }
        model.sort_unstable();
        // Passes that take none, few, many and all.
        let mut due = random.below(10);
        while !model.is_empty() {
            let split = model.partition_point(|&(deadline, _)| deadline <= due);
            let rest = model.split_off(split);
            let expected: Vec<_> = model.into_iter().map(|(_, payload)| payload).collect();
            assert_eq!(drain_due(&mut heap, due), expected);
            check_order(&heap);
            model = rest;
            due += 1 + random.below(20);
        }
        assert!(is_empty(&heap) && heap.first().is_none());
        for (key, _) in keys {
            assert_eq!(remove(&mut heap, key), None, "it has fired");
        }
    }
}

#[test]
fn numbers_that_run_out_are_given_anew_without_a_change_of_order() {
    let mut heap = TimerHeap {
        next_sequence: u32::MAX - 4,
        ..TimerHeap::default()
    };
    for payload in 0..4 {
        heap.insert(5, payload, true);
    }
    heap.collect_due(5, |_, _, _| ());
    assert_eq!(pop(&mut heap), Some(0));
    for payload in 4..8 {
        heap.insert(5, payload, true);
    }
    assert!(heap.next_sequence < 100, "numbered anew");
    heap.put_back_ready(|_, _| ());
    assert_eq!(drain_due(&mut heap, 5), [1, 2, 3, 4, 5, 6, 7]);
}

#[test]
fn what_is_removed_from_the_ready_list_is_not_popped() {
    let mut heap = TimerHeap::default();
    let first = heap.insert(1, 1, true);
    let second = heap.insert(1, 2, true);
    heap.collect_due(1, |_, _, _| ());
    assert_eq!(remove(&mut heap, second), Some(2));
    let reused = heap.insert(1, 3, true);
    assert_eq!(reused, second, "the slot is used again");
    assert_eq!(pop(&mut heap), Some(1));
    assert_eq!(pop(&mut heap), None);
    assert_eq!(remove(&mut heap, first), None);
    assert_eq!(remove(&mut heap, reused), Some(3));
}

#[test]
fn the_slot_of_a_fired_entry_is_not_used_until_it_is_removed() {
    let mut heap = TimerHeap::default();
    let fired = heap.insert(1, 1, true);
    assert_eq!(drain_due(&mut heap, 1), [1]);
    let other = heap.insert(1, 2, true);
    assert_ne!(other, fired);
    assert!(heap.get_mut(fired).is_none());
    assert_eq!(heap.get_mut(other), Some(&mut 2));
    assert_eq!(remove(&mut heap, fired), None);
    assert_eq!(heap.insert(1, 3, true), fired);
}

#[test]
fn what_is_put_back_keeps_its_place() {
    let mut heap = TimerHeap::default();
    for payload in 0..4 {
        heap.insert(5, payload, true);
    }
    heap.collect_due(5, |_, _, _| ());
    assert_eq!(pop(&mut heap), Some(0));
    heap.insert(5, 4, true);
    let mut back = Vec::new();
    heap.put_back_ready(|&payload, _| back.push(payload));
    assert_eq!(back, [1, 2, 3]);
    assert_eq!(drain_due(&mut heap, 5), [1, 2, 3, 4]);
}

/// A ready entry is no longer counted by its owner.
#[test]
fn a_mark_is_seen_to_change_in_the_heap_only() {
    let mut heap = TimerHeap::default();
    let (due, later) = (heap.insert(1, 1, true), heap.insert(2, 2, true));
    let mut marks = Vec::new();
    heap.collect_due(1, |_, &payload, mark| marks.push((payload, mark)));
    assert!(!heap.set_mark(due, false), "it is ready");
    assert!(!heap.set_mark(later, true), "it was so before");
    assert!(heap.set_mark(later, false));
    heap.put_back_ready(|&payload, mark| marks.push((payload, mark)));
    assert!(heap.set_mark(due, true));
    assert_eq!(marks, [(1, true), (1, false)]);
    assert_eq!(drain_due(&mut heap, 2), [1, 2]);
    assert!(!heap.set_mark(later, true), "it has fired");
}

#[test]
fn what_is_drained_leaves_valid_keys() {
    let mut heap = TimerHeap::default();
    let keys = [1, 1, 1, 9].map(|deadline| heap.insert(deadline, deadline, true));
    heap.collect_due(1, |_, _, _| ());
    assert_eq!(pop(&mut heap), Some(1));
    assert_eq!(remove(&mut heap, keys[1]), Some(1));
    let mut drained = heap.drain();
    drained.sort_unstable();
    assert_eq!(drained, [1, 9]);
    assert!(is_empty(&heap));
    for key in [keys[0], keys[2], keys[3]] {
        assert_eq!(remove(&mut heap, key), None);
    }
}

#[test]
fn a_burst_does_not_keep_the_memory_of_the_ready_list() {
    let mut heap = TimerHeap::default();
    for payload in 0..LARGE as u64 + 1 {
        heap.insert(1, payload, true);
    }
    assert_eq!(drain_due(&mut heap, 1).len(), LARGE + 1);
    assert_eq!(heap.ready.capacity(), 0);
    for payload in 0..FEW as u64 {
        heap.insert(1, payload, true);
    }
    assert_eq!(drain_due(&mut heap, 1).len(), FEW);
    assert_ne!(heap.ready.capacity(), 0, "a small list keeps its memory");
}
