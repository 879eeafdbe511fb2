//! Timers in lists by duration, as Node keeps them.
//!
//! Timers of one duration expire in the order in which they were started, so their list needs no
//! sorting. Only the lists are in a priority queue, by the expiry of each. The expiry of a list is
//! set when the list is created and when its head turns out not to be due. It may therefore belong
//! to a timer that was removed, and the order of timers differs from that of a heap.
//!
//! An item has a slot from its creation to its removal, and is linked into one list or none. A
//! freed slot keeps its value for the next item, so that arming and clearing timers does not
//! allocate.
//!
//! This is pure data: the caller reads the clock and runs the callbacks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use slab::Slab;

use phaseloop::extension::NumberedMap;

/// The index of no item and of no list.
const NONE: u32 = u32::MAX;

/// The maximum number of values kept in free slots.
const SPARE_VALUES: usize = 1024;

/// The minimum number of empty lists that are kept for the next timer of their duration.
const SPARE_LISTS: usize = 64;

pub(super) struct Lists<T> {
    /// The slot of each list, by duration in milliseconds.
    slots: NumberedMap<u32, u32>,
    /// The duration of the last lookup and its slot. Programs often start many timers of one
    /// duration in a row.
    last: (u32, u32),
    lists: Slab<List>,
    /// The lists by rank. An entry may be stale, but each list has an entry that is not later than
    /// its rank.
    queue: BinaryHeap<Reverse<(Rank, u32)>>,
    items: Vec<Item<T>>,
    /// The first free slot; free slots are linked by `next`.
    free: u32,
    /// The number of free slots that keep a value.
    spare_values: usize,
    next_order: u64,
    /// The number of dropped lists.
    spare: usize,
}

/// The key of the queue: the expiry of a list, then the order in which the entries were queued.
/// Each entry has a rank of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    expiry: u64,
    order: u64,
}

impl Rank {
    /// The rank after all others.
    const LAST: Self = Self {
        expiry: u64::MAX,
        order: u64::MAX,
    };
}

struct List {
    duration: u32,
    head: u32,
    tail: u32,
    /// A dropped list is kept for the next timer of its duration. Its entries in the queue are
    /// ignored.
    is_dropped: bool,
    rank: Rank,
    /// The earliest entry of the list in the queue; [`Rank::LAST`] if it has none.
    entry: Rank,
    /// The order of its first rank. It distinguishes the list from a later list in the same slot.
    id: u64,
}

struct Item<T> {
    /// The value; in a free slot, the value of the previous item.
    value: Option<T>,
    /// The slot of the list; [`NONE`] if the item is in no list.
    list: u32,
    previous: u32,
    next: u32,
}

/// Identifies a list, which may have been removed.
#[derive(Clone, Copy)]
pub(super) struct ListKey {
    slot: u32,
    id: u64,
}

/// Identifies the slot of an item, until the slot is freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ItemKey(u32);

impl ItemKey {
    /// The key of no slot, for items whose lists were drained.
    pub(super) const NOWHERE: Self = Self(NONE);
}

impl<T> Lists<T> {
    pub(super) fn new() -> Self {
        Self {
            slots: NumberedMap::default(),
            last: (0, NONE),
            lists: Slab::new(),
            queue: BinaryHeap::new(),
            items: Vec::new(),
            free: NONE,
            spare_values: 0,
            next_order: 0,
            spare: 0,
        }
    }

    /// Allocates a slot for an item that is in no list. Returns the value that the previous item
    /// left there, if any.
    #[inline]
    pub(super) fn take_place(&mut self) -> (ItemKey, Option<&T>) {
        let place = self.free;
        if place == NONE {
            return (self.new_place(), None);
        }
        let item = &mut self.items[place as usize];
        self.free = item.next;
        self.spare_values -= usize::from(item.value.is_some());
        (ItemKey(place), item.value.as_ref())
    }

    #[cold]
    fn new_place(&mut self) -> ItemKey {
        let place = u32::try_from(self.items.len()).ok();
        self.items.push(Item {
            value: None,
            list: NONE,
            previous: NONE,
            next: NONE,
        });
        let place = place.filter(|&place| place != NONE);
        ItemKey(place.expect("fewer than 2^32 timers are armed at once"))
    }

    /// Stores a value in a slot.
    pub(super) fn put(&mut self, key: ItemKey, value: T) {
        self.items[key.0 as usize].value = Some(value);
    }

    /// Frees the slot of an item that is in no list. The slot keeps the value; beyond the maximum
    /// number of kept values, the value is returned.
    #[inline]
    pub(super) fn give_back(&mut self, key: ItemKey) -> Option<T> {
        let item = &mut self.items[key.0 as usize];
        debug_assert!(item.list == NONE, "the item is in no list");
        item.next = std::mem::replace(&mut self.free, key.0);
        if self.spare_values == SPARE_VALUES {
            return item.value.take();
        }
        self.spare_values += usize::from(item.value.is_some());
        None
    }

    /// Appends an item, which is in no list and was started at `start`, to the list of its
    /// duration. Returns the expiry of the list if the list is new.
    #[inline(always)]
    pub(super) fn link(&mut self, key: ItemKey, duration: u32, start: u64) -> Option<u64> {
        let slot = match self.slot_of(duration) {
            Some(slot) => slot,
            None => self.new_list(duration),
        };
        let list = &mut self.lists[slot as usize];
        let previous = std::mem::replace(&mut list.tail, key.0);
        let is_dropped = list.is_dropped;
        if previous == NONE {
            list.head = key.0;
        } else {
            self.items[previous as usize].next = key.0;
        }
        let item = &mut self.items[key.0 as usize];
        item.list = slot;
        item.previous = previous;
        item.next = NONE;
        is_dropped.then(|| self.begin(slot, start + u64::from(duration)))
    }

    /// Returns whether an item is the last of the list of a duration.
    #[inline]
    pub(super) fn is_last_of(&self, key: ItemKey, duration: u32) -> bool {
        let item = self.items.get(key.0 as usize);
        let list = item.filter(|item| item.next == NONE && item.list != NONE);
        list.is_some_and(|item| self.lists[item.list as usize].duration == duration)
    }

    #[inline]
    fn slot_of(&mut self, duration: u32) -> Option<u32> {
        if self.last.0 != duration || self.last.1 == NONE {
            self.last = (duration, *self.slots.get(&duration)?);
        }
        Some(self.last.1)
    }

    /// Creates a list, which counts as dropped until it [begins](Self::begin).
    #[cold]
    fn new_list(&mut self, duration: u32) -> u32 {
        if self.spare > SPARE_LISTS && self.spare > self.lists.len() / 2 {
            self.remove_spare();
        }
        let slot = self.lists.insert(List {
            duration,
            head: NONE,
            tail: NONE,
            is_dropped: true,
            rank: Rank {
                expiry: 0,
                order: 0,
            },
            entry: Rank::LAST,
            id: 0,
        });
        let slot = u32::try_from(slot).expect("fewer than 2^32 durations");
        self.slots.insert(duration, slot);
        self.spare += 1;
        slot
    }

    /// Removes all dropped lists.
    fn remove_spare(&mut self) {
        self.last = (0, NONE);
        let Self {
            slots,
            lists,
            queue,
            ..
        } = self;
        queue.retain(|Reverse((_, slot))| !lists[*slot as usize].is_dropped);
        slots.retain(|_, slot| !lists[*slot as usize].is_dropped);
        lists.retain(|_, list| !list.is_dropped);
        self.spare = 0;
    }

    /// Turns a dropped list into a new one.
    #[inline]
    fn begin(&mut self, slot: u32, expiry: u64) -> u64 {
        self.spare -= 1;
        let rank = self.next_rank(expiry);
        let list = &mut self.lists[slot as usize];
        list.is_dropped = false;
        list.id = rank.order;
        list.rank = rank;
        if list.entry > rank {
            list.entry = rank;
            self.queue.push(Reverse((rank, slot)));
        }
        expiry
    }

    fn next_rank(&mut self, expiry: u64) -> Rank {
        let order = self.next_order;
        self.next_order += 1;
        Rank { expiry, order }
    }

    /// Unlinks an item from its list, if it is in one. The list stays and keeps its expiry, even if
    /// it is now empty.
    #[inline]
    pub(super) fn unlink(&mut self, key: ItemKey) -> bool {
        self.unlink_from(key).is_some()
    }

    /// Unlinks an item from its list, and drops the list if it is now empty.
    #[inline]
    pub(super) fn unlink_with_list(&mut self, key: ItemKey) -> bool {
        let list = self.unlink_from(key);
        if let Some(list) = list {
            if self.lists[list as usize].head == NONE {
                self.drop_list(list);
            }
        }
        list.is_some()
    }

    /// Unlinks an item and returns the slot of the list that it was in.
    #[inline]
    fn unlink_from(&mut self, key: ItemKey) -> Option<u32> {
        let item = self.items.get_mut(key.0 as usize)?;
        let list = std::mem::replace(&mut item.list, NONE);
        if list == NONE {
            return None;
        }
        let (previous, next) = (item.previous, item.next);
        let ends = &mut self.lists[list as usize];
        if previous == NONE {
            ends.head = next;
        } else {
            self.items[previous as usize].next = next;
        }
        if next == NONE {
            ends.tail = previous;
        } else {
            self.items[next as usize].previous = previous;
        }
        Some(list)
    }

    /// Drops the list of a duration if it is empty.
    pub(super) fn drop_if_empty(&mut self, duration: u32) {
        if let Some(slot) = self.slot_of(duration) {
            if self.lists[slot as usize].head == NONE {
                self.drop_list(slot);
            }
        }
    }

    fn drop_list(&mut self, slot: u32) {
        let list = &mut self.lists[slot as usize];
        if !std::mem::replace(&mut list.is_dropped, true) {
            self.spare += 1;
        }
    }

    /// Returns the list that expires first, and its expiry.
    pub(super) fn first(&mut self) -> Option<(ListKey, u64)> {
        loop {
            let &Reverse((rank, slot)) = self.queue.peek()?;
            let list = &mut self.lists[slot as usize];
            if !list.is_dropped && list.rank == rank {
                return Some((ListKey { slot, id: list.id }, rank.expiry));
            }
            self.queue.pop();
            if list.entry == rank {
                list.entry = Rank::LAST;
                if !list.is_dropped {
                    list.entry = list.rank;
                    self.queue.push(Reverse((list.rank, slot)));
                }
            }
        }
    }

    fn list(&self, key: ListKey) -> Option<&List> {
        let list = self.lists.get(key.slot as usize)?;
        (list.id == key.id && !list.is_dropped).then_some(list)
    }

    /// Returns the first item of a list and the list's duration. `None`: the list is empty or was
    /// removed.
    pub(super) fn head(&self, key: ListKey) -> Option<(&T, u32)> {
        let list = self.list(key)?;
        let item = self.items.get(list.head as usize)?;
        Some((item.value.as_ref()?, list.duration))
    }

    /// Queues a list again, after all others of the same expiry. The new expiry must not be earlier
    /// than the current one.
    pub(super) fn postpone(&mut self, key: ListKey, expiry: u64) {
        if self.list(key).is_some() {
            self.lists[key.slot as usize].rank = self.next_rank(expiry);
        }
    }

    /// Drops an empty list, unless it was dropped already.
    pub(super) fn retire(&mut self, key: ListKey) {
        if self.list(key).is_some() {
            self.drop_list(key.slot);
        }
    }

    /// The values of all items that are in a list, in no particular order.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        let linked = self.items.iter().filter(|item| item.list != NONE);
        linked.filter_map(|item| item.value.as_ref())
    }

    /// Removes all values, including those kept in free slots.
    pub(super) fn drain(&mut self) -> Vec<T> {
        let Self { items, .. } = std::mem::replace(self, Self::new());
        items.into_iter().filter_map(|item| item.value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{ItemKey, Lists};

    impl<T> Lists<T> {
        fn insert(&mut self, duration: u32, start: u64, value: T) -> (ItemKey, Option<u64>) {
            let (place, _) = self.take_place();
            self.put(place, value);
            (place, self.link(place, duration, start))
        }
    }

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
        assert!(lists.unlink(b) && !lists.unlink(b));
        assert_eq!(lists.drain(), ["a", "b", "c"]);
    }

    #[test]
    fn the_last_item_of_a_duration_is_known() {
        let mut lists = Lists::new();
        let (a, _) = lists.insert(10, 0, "a");
        assert!(lists.is_last_of(a, 10) && !lists.is_last_of(a, 11));
        let (b, _) = lists.insert(10, 0, "b");
        assert!(!lists.is_last_of(a, 10) && lists.is_last_of(b, 10));
        lists.unlink(b);
        assert!(lists.is_last_of(a, 10) && !lists.is_last_of(b, 10));
        assert!(!lists.is_last_of(ItemKey::NOWHERE, 10));
    }

    #[test]
    fn n045_a_list_keeps_the_expiry_of_an_item_that_is_gone() {
        let mut lists = Lists::new();
        let (a, _) = lists.insert(400, 0, "a");
        lists.insert(400, 150, "c");
        lists.insert(325, 150, "b");
        lists.unlink_with_list(a);
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
        lists.unlink(a);
        assert!(lists.head(key).is_none());
        lists.drop_if_empty(10);
        lists.insert(10, 50, "b");
        assert!(lists.head(key).is_none());
        lists.retire(key);
        let (key, expiry) = lists.first().unwrap();
        assert_eq!((lists.head(key), expiry), (Some((&"b", 10)), 60));
    }

    #[test]
    fn lists_of_many_durations_are_not_kept_for_ever() {
        let mut lists = Lists::new();
        for duration in 1..1000 {
            let (item, expiry) = lists.insert(duration, 0, ());
            assert_eq!(expiry, Some(u64::from(duration)));
            lists.unlink(item);
            assert!(lists.give_back(item).is_none());
            lists.drop_if_empty(duration);
            assert!(lists.first().is_none());
        }
        assert!(lists.lists.len() <= super::SPARE_LISTS + 2);
        assert_eq!(lists.lists.len(), lists.slots.len());
        assert_eq!(lists.lists.len(), lists.spare);
    }

    #[test]
    fn values_stay_in_free_places_for_the_next_items() {
        let mut lists = Lists::new();
        let (a, _) = lists.insert(10, 0, "a");
        lists.unlink(a);
        assert_eq!(lists.give_back(a), None);
        assert_eq!(lists.take_place(), (a, Some(&"a")));
        let (b, left) = lists.take_place();
        assert!(a != b && left.is_none());
        assert!(!lists.unlink(ItemKey::NOWHERE));
    }

    #[test]
    fn not_all_values_are_kept_for_ever() {
        let mut lists = Lists::new();
        let places: Vec<_> = (0..super::SPARE_VALUES + 2)
            .map(|_| {
                let (place, _) = lists.take_place();
                lists.put(place, "value");
                place
            })
            .collect();
        let returned = places.iter().filter_map(|&place| lists.give_back(place));
        assert_eq!(returned.count(), 2);
        let kept = places.iter().filter(|_| lists.take_place().1.is_some());
        assert_eq!(kept.count(), super::SPARE_VALUES);
    }

    /// Entries of the queue may be stale. The order must be that of a queue without stale entries.
    #[test]
    fn n046_ranks_decide_however_late_the_queue_learns_of_them() {
        let mut lists = Lists::new();
        let (old, _) = lists.insert(10, 0, "old");
        lists.unlink_with_list(old);
        assert_eq!(lists.insert(10, 40, "a").1, Some(50));
        lists.insert(5, 45, "b");
        lists.insert(20, 30, "c");
        let mut order = Vec::new();
        while let Some((key, expiry)) = lists.first() {
            assert_eq!(expiry, 50);
            order.push(*lists.head(key).unwrap().0);
            lists.retire(key);
        }
        assert_eq!(order, ["a", "b", "c"]);
    }

    /// An interval restarts from the time before its callback. In the callback, a list with a later
    /// start may have been created and removed.
    #[test]
    fn n048_a_list_may_begin_earlier_than_the_last_of_its_duration() {
        let mut lists = Lists::new();
        let (later, _) = lists.insert(10, 8, "later");
        lists.insert(4, 10, "between");
        lists.unlink_with_list(later);
        assert_eq!(lists.insert(10, 1, "interval").1, Some(11));
        let (key, _) = lists.first().unwrap();
        assert_eq!(lists.head(key), Some((&"interval", 10)));
        lists.retire(key);
        let (key, _) = lists.first().unwrap();
        assert_eq!(lists.head(key), Some((&"between", 4)));
        lists.retire(key);
        assert!(lists.first().is_none());
    }
}
