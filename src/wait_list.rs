//! A list of those that wait for one thing: first in, first out, with removal from the middle at
//! constant cost. Sources, locks and channels have one.
//!
//! It is a linked list in a slab, since thousands of tasks may wait for one source.
//!
//! ```text
//!                 set_aside                     remove
//!   push ──> waiting ──────> set aside: served ───────>      remove, pop_before: from waiting
//!               ^                  │
//!               └── put_back ──────┘  to the place by its number
//! ```
//!
//! No function runs user code, but the callers do when they clone, wake or drop wakers. So these
//! come in and go out by value, and the list is not borrowed meanwhile.

use std::task::Waker;

use slab::Slab;

/// The key of one waiter. The key of a waiter that was woken or removed matches no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitKey {
    place: usize,
    number: u64,
}

impl WaitKey {
    /// Returns whether the waiter began to wait before the one with the number `limit`.
    #[inline]
    pub(crate) fn is_before(self, limit: u64) -> bool {
        self.number < limit
    }
}

/// Not a place of the slab.
const NONE: usize = usize::MAX;

/// A list that was longer than this releases its memory when it is empty.
const LARGE: usize = 64;

/// The waiters, each with a value of type `T`.
pub(crate) struct WaitList<T = ()> {
    waiters: Slab<Waiter<T>>,
    /// Those that wait, in the order of their numbers.
    waiting: Chain,
    /// Those that were served, and have not noticed it yet.
    aside: Chain,
    next_number: u64,
}

struct Waiter<T> {
    number: u64,
    /// The order among those that wait: the number, or the rank of the waiter in whose place it
    /// waits.
    rank: u64,
    /// `None` for one that is set aside.
    waker: Option<Waker>,
    value: T,
    before: usize,
    behind: usize,
}

/// The ends of a linked list.
#[derive(Clone, Copy)]
struct Chain {
    first: usize,
    last: usize,
}

impl Chain {
    const EMPTY: Self = Self {
        first: NONE,
        last: NONE,
    };
}

impl<T> Default for WaitList<T> {
    fn default() -> Self {
        Self {
            waiters: Slab::new(),
            waiting: Chain::EMPTY,
            aside: Chain::EMPTY,
            next_number: 0,
        }
    }
}

impl WaitList {
    /// Adds a waiter behind all others.
    pub(crate) fn push(&mut self, waker: Waker) -> WaitKey {
        self.push_with(waker, ())
    }
}

impl<T> WaitList<T> {
    /// Returns whether none waits. Those that are set aside do not count.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.first == NONE
    }

    /// Returns whether a waiter is set aside.
    #[inline]
    pub(crate) fn has_aside(&self) -> bool {
        self.aside.first != NONE
    }

    /// Returns the number of the next waiter. The waiters with lower numbers are waiting already.
    pub(crate) fn next_number(&self) -> u64 {
        self.next_number
    }

    /// Returns the key of a waiter that waits outside of the list, and before all in it.
    #[inline]
    pub(crate) fn new_key_outside(&mut self) -> WaitKey {
        let number = self.next_number;
        self.next_number += 1;
        WaitKey {
            place: NONE,
            number,
        }
    }

    /// Adds a waiter behind all others.
    #[inline]
    pub(crate) fn push_with(&mut self, waker: Waker, value: T) -> WaitKey {
        let number = self.next_number;
        self.next_number += 1;
        let place = self.waiters.insert(Waiter {
            number,
            rank: number,
            waker: Some(waker),
            value,
            before: NONE,
            behind: NONE,
        });
        let last = self.waiting.last;
        self.insert_behind(last, place, false);
        WaitKey { place, number }
    }

    /// Replaces the waker of a waiter and returns the previous one.
    ///
    /// # Errors
    ///
    /// Returns `waker` if the waiter is not in the list any more, or is set aside.
    pub(crate) fn replace(&mut self, key: WaitKey, waker: Waker) -> Result<Waker, Waker> {
        match self.waiters.get_mut(key.place) {
            Some(waiter) if waiter.number == key.number => match &mut waiter.waker {
                Some(current) => Ok(std::mem::replace(current, waker)),
                None => Err(waker),
            },
            _ => Err(waker),
        }
    }

    /// Returns the waker of a waiter, or `None` for one that is set aside, and its value.
    #[inline]
    pub(crate) fn get_mut(&mut self, key: WaitKey) -> Option<(Option<&Waker>, &mut T)> {
        let waiter = self.waiters.get_mut(key.place)?;
        (waiter.number == key.number).then_some((waiter.waker.as_ref(), &mut waiter.value))
    }

    /// Removes a waiter, if it is still in the list. One that is set aside has no waker.
    #[inline]
    pub(crate) fn remove(&mut self, key: WaitKey) -> Option<(Option<Waker>, T)> {
        let waiter = self.waiters.get(key.place)?;
        (waiter.number == key.number).then(|| self.take(key.place))
    }

    /// Removes the first waiter if its number is below `limit`.
    pub(crate) fn pop_before(&mut self, limit: u64) -> Option<Waker> {
        let first = self.waiters.get(self.waiting.first)?;
        if first.number >= limit {
            return None;
        }
        self.take(self.waiting.first).0
    }

    /// Returns the first waiter.
    #[inline]
    pub(crate) fn first(&self) -> Option<(WaitKey, &T)> {
        let place = self.waiting.first;
        let waiter = self.waiters.get(place)?;
        let number = waiter.number;
        Some((WaitKey { place, number }, &waiter.value))
    }

    /// Sets a waiter aside, which was served, and takes its waker.
    #[inline]
    pub(crate) fn set_aside(&mut self, key: WaitKey) -> Option<Waker> {
        let waiter = self.waiters.get_mut(key.place)?;
        if waiter.number != key.number {
            return None;
        }
        let waker = waiter.waker.take()?;
        self.unlink(key.place, false);
        let last = self.aside.last;
        self.insert_behind(last, key.place, true);
        Some(waker)
    }

    /// Lets a waiter that is set aside wait again, at its old place. Returns `waker` if there is no
    /// such waiter.
    pub(crate) fn put_back(&mut self, key: WaitKey, waker: Waker) -> Option<Waker> {
        let waiter = self.waiters.get_mut(key.place);
        let aside = waiter.filter(|waiter| waiter.number == key.number && waiter.waker.is_none());
        let Some(aside) = aside else {
            return Some(waker);
        };
        aside.waker = Some(waker);
        let rank = aside.rank;
        self.unlink(key.place, true);
        let before = self.last_up_to(rank);
        self.insert_behind(before, key.place, false);
        None
    }

    /// Lets a waiter wait right before another one, in its place.
    pub(crate) fn put_before(&mut self, key: WaitKey, other: WaitKey) {
        let is = |key: WaitKey| {
            let waiter = self.waiters.get(key.place);
            waiter.is_some_and(|waiter| waiter.number == key.number && waiter.waker.is_some())
        };
        if key == other || !is(key) || !is(other) {
            return;
        }
        self.unlink(key.place, false);
        let Waiter { before, rank, .. } = self.waiters[other.place];
        self.waiters[key.place].rank = rank;
        self.insert_behind(before, key.place, false);
    }

    /// Returns the place of the last waiter in front with at most this rank. Waiters are served in
    /// order, so those in front of one that was served were put back, too: they are few.
    fn last_up_to(&self, rank: u64) -> usize {
        let waiters = self.waiters_of(self.waiting);
        let in_front = waiters.take_while(|(_, waiter)| waiter.rank <= rank);
        in_front.last().map_or(NONE, |(place, _)| place)
    }

    #[inline]
    fn take(&mut self, place: usize) -> (Option<Waker>, T) {
        let is_aside = self.waiters[place].waker.is_none();
        self.unlink(place, is_aside);
        let waiter = self.waiters.remove(place);
        if self.waiters.is_empty() && self.waiters.capacity() > LARGE {
            self.waiters = Slab::new();
        }
        (waiter.waker, waiter.value)
    }

    #[inline]
    fn chain(&mut self, is_aside: bool) -> &mut Chain {
        if is_aside {
            &mut self.aside
        } else {
            &mut self.waiting
        }
    }

    /// Takes a place out of its chain.
    #[inline]
    fn unlink(&mut self, place: usize, is_aside: bool) {
        let Waiter { before, behind, .. } = self.waiters[place];
        match self.waiters.get_mut(before) {
            Some(before) => before.behind = behind,
            None => self.chain(is_aside).first = behind,
        }
        match self.waiters.get_mut(behind) {
            Some(behind) => behind.before = before,
            None => self.chain(is_aside).last = before,
        }
    }

    /// Links a place into a chain behind `before`, or as the first.
    #[inline]
    fn insert_behind(&mut self, before: usize, place: usize, is_aside: bool) {
        let behind = match self.waiters.get_mut(before) {
            Some(before) => std::mem::replace(&mut before.behind, place),
            None => std::mem::replace(&mut self.chain(is_aside).first, place),
        };
        match self.waiters.get_mut(behind) {
            Some(behind) => behind.before = place,
            None => self.chain(is_aside).last = place,
        }
        let waiter = &mut self.waiters[place];
        (waiter.before, waiter.behind) = (before, behind);
    }

    /// Returns the wakers of those that wait, in the order of their wait.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Waker> {
        let waiters = self.waiters_of(self.waiting);
        waiters.filter_map(|(_, waiter)| waiter.waker.as_ref())
    }

    /// Returns the wakers and the values of those that wait, in the order of their wait.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (&Waker, &T)> {
        let waiters = self.waiters_of(self.waiting);
        waiters.filter_map(|(_, waiter)| Some((waiter.waker.as_ref()?, &waiter.value)))
    }

    /// Returns those that are set aside, in the order in which they were.
    pub(crate) fn aside(&self) -> impl Iterator<Item = (WaitKey, &T)> {
        let waiters = self.waiters_of(self.aside);
        waiters.map(|(place, waiter)| {
            let number = waiter.number;
            (WaitKey { place, number }, &waiter.value)
        })
    }

    fn waiters_of(&self, chain: Chain) -> impl Iterator<Item = (usize, &Waiter<T>)> {
        let mut next = chain.first;
        std::iter::from_fn(move || {
            let place = next;
            let waiter = self.waiters.get(place)?;
            next = waiter.behind;
            Some((place, waiter))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{WaitKey, WaitList};
    use std::collections::VecDeque;
    use std::task::Waker;

    use waker_fn::waker_fn;

    fn waker() -> Waker {
        // The closure has a size, so that two wakers differ.
        let size = 1_u8;
        waker_fn(move || panic!("no test wakes one of size {size}"))
    }

    /// Returns the data pointers of the wakers, of which each has its own.
    fn names(list: &WaitList) -> Vec<*const ()> {
        list.iter().map(Waker::data).collect()
    }

    fn removed(list: &mut WaitList, key: WaitKey) -> Waker {
        list.remove(key).unwrap().0.unwrap()
    }

    #[test]
    fn waiters_come_out_in_the_order_of_their_wait() {
        let mut list = WaitList::default();
        let wakers: Vec<_> = (0..5).map(|_| waker()).collect();
        let keys: Vec<_> = wakers
            .iter()
            .map(|waker| list.push(waker.clone()))
            .collect();
        assert!(removed(&mut list, keys[2]).will_wake(&wakers[2]));
        assert!(removed(&mut list, keys[0]).will_wake(&wakers[0]));
        assert!(list.remove(keys[0]).is_none());
        for waker in [&wakers[1], &wakers[3], &wakers[4]] {
            assert!(list.pop_before(u64::MAX).unwrap().will_wake(waker));
        }
        assert!(list.is_empty() && list.pop_before(u64::MAX).is_none());
    }

    #[test]
    fn one_who_began_to_wait_meanwhile_stays() {
        let mut list = WaitList::default();
        list.push(waker());
        let limit = list.next_number();
        list.push(waker());
        assert!(list.pop_before(limit).is_some());
        assert!(list.pop_before(limit).is_none());
        assert!(!list.is_empty());
    }

    #[test]
    fn the_key_of_one_who_has_gone_matches_no_other() {
        let mut list = WaitList::default();
        let old = list.push(waker());
        list.remove(old).unwrap();
        let new = list.push(waker());
        assert_eq!(old.place, new.place, "the place is used again");
        assert!(list.remove(old).is_none());
        assert!(list.replace(old, waker()).is_err());
        assert!(list.replace(new, waker()).is_ok());
    }

    #[test]
    fn the_list_is_as_long_as_its_waiters_were_many_at_once() {
        let mut list = WaitList::default();
        let stays = list.push(waker());
        for _ in 0..1000 {
            let goes = list.push(waker());
            assert_eq!(goes.place, 1);
            list.remove(goes).unwrap();
        }
        assert!(list.remove(stays).is_some());
    }

    #[test]
    fn a_list_that_was_long_gives_its_memory_back() {
        let mut list = WaitList::default();
        for _ in 0..1000 {
            list.push(waker());
        }
        while list.pop_before(u64::MAX).is_some() {}
        assert_eq!(list.waiters.capacity(), 0);
        list.push(waker());
        assert!(list.pop_before(u64::MAX).is_some());
    }

    /// Compares a long series of additions and removals with a plain queue.
    #[test]
    fn the_list_does_what_a_plain_queue_does() {
        let mut list = WaitList::default();
        let mut model: VecDeque<(WaitKey, *const ())> = VecDeque::new();
        let mut random: u64 = 12;
        for _ in 0..10_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            match random >> 62 {
                0 | 1 => {
                    let waker = waker();
                    let data = waker.data();
                    model.push_back((list.push(waker), data));
                }
                2 if !model.is_empty() => {
                    let place = (random >> 32) as usize % model.len();
                    let (key, data) = model.remove(place).unwrap();
                    assert_eq!(removed(&mut list, key).data(), data);
                }
                _ => {
                    let popped = list.pop_before(u64::MAX).map(|waker| waker.data());
                    assert_eq!(popped, model.pop_front().map(|(_, data)| data));
                }
            }
            if random >> 56 == 0 {
                let expected: Vec<_> = model.iter().map(|(_, data)| *data).collect();
                assert_eq!(names(&list), expected);
            }
        }
    }

    #[test]
    fn one_that_is_set_aside_comes_back_to_its_place() {
        let mut list = WaitList::<u32>::default();
        let keys: Vec<_> = (0..5)
            .map(|number| list.push_with(waker(), number))
            .collect();
        let waiting = |list: &WaitList<u32>| -> Vec<_> {
            list.waiting().map(|(_, number)| *number).collect()
        };
        let aside =
            |list: &WaitList<u32>| -> Vec<_> { list.aside().map(|(_, number)| *number).collect() };
        for key in &keys[..3] {
            assert!(list.set_aside(*key).is_some());
            assert!(list.set_aside(*key).is_none(), "it is aside already");
            assert!(list.replace(*key, waker()).is_err());
        }
        assert_eq!((waiting(&list), aside(&list)), (vec![3, 4], vec![0, 1, 2]));
        assert!(list.put_back(keys[1], waker()).is_none());
        assert!(list.put_back(keys[1], waker()).is_some(), "it waits");
        assert!(list.put_back(keys[0], waker()).is_none());
        assert_eq!((waiting(&list), aside(&list)), (vec![0, 1, 3, 4], vec![2]));
        list.put_before(keys[4], keys[1]);
        assert_eq!(waiting(&list), [0, 4, 1, 3]);
        list.put_before(keys[4], keys[2]);
        list.put_before(keys[0], keys[0]);
        assert_eq!(
            waiting(&list),
            [0, 4, 1, 3],
            "one that is aside has no place"
        );
        assert!(list.put_back(keys[2], waker()).is_none());
        assert!(!list.has_aside());
        for number in [0, 4, 1, 2, 3] {
            let (key, &first) = list.first().unwrap();
            assert_eq!(first, number);
            list.remove(key);
        }
        assert!(list.is_empty() && list.waiters.is_empty());
    }
}
