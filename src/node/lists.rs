//! Timers in lists by duration, as Node keeps them (N41).
//!
//! Timers of one duration expire in the order in which they were started, so a list of them needs no sorting; only the
//! lists stand in a queue, by the expiry of each. That expiry is set when a list is made and when its head is found not
//! to be due, nowhere else: it may be that of a timer which is gone (N45). The order of timers therefore differs from that
//! of a heap.
//!
//! Pure data: the caller knows the time and calls the timers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use slab::Slab;

use crate::event_loop::heap::{TimerHeap, TimerKey};

/// No item.
const NONE: u32 = u32::MAX;

pub(super) struct Lists<T> {
    /// The lists by duration, in milliseconds.
    by_duration: HashMap<u32, u32, BuildHasherDefault<DurationHasher>>,
    lists: Slab<List>,
    /// The lists by expiry; equal ones in the order of their entry (N46).
    queue: TimerHeap<u32>,
    items: Slab<Item<T>>,
    next_id: u64,
}

struct List {
    /// Tells the list from a later one in the same slot.
    id: u64,
    duration: u32,
    head: u32,
    tail: u32,
    place: TimerKey,
}

struct Item<T> {
    value: T,
    list: u32,
    previous: u32,
    next: u32,
}

/// Names a list; it may be gone.
#[derive(Clone, Copy)]
pub(super) struct ListKey {
    slot: u32,
    id: u64,
}

/// Names an item until it is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ItemKey(u32);

impl<T> Lists<T> {
    pub(super) fn new() -> Self {
        Self {
            by_duration: HashMap::default(),
            lists: Slab::new(),
            queue: TimerHeap::new(),
            items: Slab::new(),
            next_id: 0,
        }
    }

    /// Appends an item that was started at `start` to the list of its duration. If that had to be made, its expiry is
    /// returned as well.
    pub(super) fn insert(&mut self, duration: u32, start: u64, value: T) -> (ItemKey, Option<u64>) {
        let (list, expiry) = match self.by_duration.get(&duration) {
            Some(&list) => (list, None),
            None => {
                let expiry = start + u64::from(duration);
                (self.new_list(duration, expiry), Some(expiry))
            }
        };
        let previous = self.lists[list as usize].tail;
        let slot = self.items.insert(Item {
            value,
            list,
            previous,
            next: NONE,
        });
        let slot = u32::try_from(slot).expect("fewer than 2^32 timers are armed at once");
        self.lists[list as usize].tail = slot;
        match self.items.get_mut(previous as usize) {
            Some(previous) => previous.next = slot,
            None => self.lists[list as usize].head = slot,
        }
        (ItemKey(slot), expiry)
    }

    fn new_list(&mut self, duration: u32, expiry: u64) -> u32 {
        let entry = self.lists.vacant_entry();
        let slot = u32::try_from(entry.key()).expect("fewer than 2^32 durations");
        let id = self.next_id;
        self.next_id += 1;
        entry.insert(List {
            id,
            duration,
            head: NONE,
            tail: NONE,
            place: self.queue.insert(expiry, slot),
        });
        self.by_duration.insert(duration, slot);
        slot
    }

    /// Takes an item out. Its list stays, with the expiry it has, even if it is empty now.
    pub(super) fn remove(&mut self, key: ItemKey) -> T {
        let item = self.items.remove(key.0 as usize);
        match self.items.get_mut(item.previous as usize) {
            Some(previous) => previous.next = item.next,
            None => self.lists[item.list as usize].head = item.next,
        }
        match self.items.get_mut(item.next as usize) {
            Some(next) => next.previous = item.previous,
            None => self.lists[item.list as usize].tail = item.previous,
        }
        item.value
    }

    /// Drops the list of a duration if it is empty.
    pub(super) fn drop_if_empty(&mut self, duration: u32) {
        if let Some(&slot) = self.by_duration.get(&duration) {
            if self.lists[slot as usize].head == NONE {
                self.drop_list(slot);
            }
        }
    }

    fn drop_list(&mut self, slot: u32) {
        let list = self.lists.remove(slot as usize);
        self.queue.remove(list.place);
        self.by_duration.remove(&list.duration);
    }

    /// The list that expires first, and when.
    pub(super) fn first(&self) -> Option<(ListKey, u64)> {
        let (expiry, &slot) = self.queue.first()?;
        let id = self.lists[slot as usize].id;
        Some((ListKey { slot, id }, expiry))
    }

    fn list(&self, key: ListKey) -> Option<&List> {
        let list = self.lists.get(key.slot as usize)?;
        (list.id == key.id).then_some(list)
    }

    /// The first item of a list, and the list's duration. `None`: the list is empty, or gone.
    pub(super) fn head(&self, key: ListKey) -> Option<(&T, u32)> {
        let list = self.list(key)?;
        let item = self.items.get(list.head as usize)?;
        Some((&item.value, list.duration))
    }

    /// Puts a list back into the queue, behind all of the same expiry.
    pub(super) fn postpone(&mut self, key: ListKey, expiry: u64) {
        if let Some(list) = self.list(key) {
            self.queue.remove(list.place);
            self.lists[key.slot as usize].place = self.queue.insert(expiry, key.slot);
        }
    }

    /// Drops a list whose items are all gone, if that has not happened yet.
    pub(super) fn retire(&mut self, key: ListKey) {
        if self.list(key).is_some() {
            self.drop_list(key.slot);
        }
    }

    /// Takes everything out.
    pub(super) fn drain(&mut self) -> Vec<T> {
        self.by_duration.clear();
        self.lists.clear();
        self.queue.drain();
        self.items.drain().map(|item| item.value).collect()
    }
}

/// Durations are small numbers of the program's own: one multiplication spreads them well enough.
#[derive(Default)]
struct DurationHasher(u64);

impl Hasher for DurationHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(self.0 as u32 ^ u32::from(byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        // The odd number nearest to 2^64 divided by the golden ratio.
        self.0 = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        // The high bits are the well-mixed ones; the map looks at both ends.
        self.0 ^ (self.0 >> 32)
    }
}

#[cfg(test)]
mod tests {
    use super::Lists;

    #[test]
    fn n041_items_of_one_duration_share_a_list_in_order() {
        let mut lists = Lists::new();
        let (_, expiry) = lists.insert(10, 100, "a");
        assert_eq!(expiry, Some(110));
        let (b, expiry) = lists.insert(10, 105, "b");
        assert_eq!(expiry, None);
        lists.insert(10, 106, "c");
        let (list, expiry) = lists.first().unwrap();
        assert_eq!(expiry, 110);
        assert_eq!(lists.head(list), Some((&"a", 10)));
        assert_eq!(lists.remove(b), "b");
        assert_eq!(lists.drain().len(), 2);
    }

    #[test]
    fn n045_a_list_keeps_the_expiry_of_an_item_that_is_gone() {
        let mut lists = Lists::new();
        let (a, _) = lists.insert(400, 0, "a");
        lists.insert(400, 150, "c");
        lists.insert(325, 150, "b");
        lists.remove(a);
        lists.drop_if_empty(400);
        let (list, expiry) = lists.first().unwrap();
        assert_eq!((lists.head(list), expiry), (Some((&"c", 400)), 400));
    }

    #[test]
    fn n046_a_postponed_list_goes_behind_those_of_the_same_expiry() {
        let mut lists = Lists::new();
        lists.insert(10, 0, "a");
        lists.insert(5, 5, "b");
        let (first, _) = lists.first().unwrap();
        assert_eq!(lists.head(first), Some((&"a", 10)));
        lists.postpone(first, 10);
        let (first, _) = lists.first().unwrap();
        assert_eq!(lists.head(first), Some((&"b", 5)));
    }

    #[test]
    fn a_key_of_a_list_that_is_gone_matches_nothing() {
        let mut lists = Lists::new();
        let (a, _) = lists.insert(10, 0, "a");
        let (key, _) = lists.first().unwrap();
        lists.remove(a);
        assert!(lists.head(key).is_none());
        lists.drop_if_empty(10);
        lists.insert(10, 50, "b");
        assert!(lists.head(key).is_none());
        lists.retire(key);
        let (key, expiry) = lists.first().unwrap();
        assert_eq!((lists.head(key), expiry), (Some((&"b", 10)), 60));
    }
}
