//! The futures that wait for one direction of a source: first in, first out, with removal from the
//! middle at constant cost.
//!
//! It is a linked list in a slab, since thousands of tasks may wait for one source.

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
    pub(super) fn is_before(self, limit: u64) -> bool {
        self.number < limit
    }
}

/// Not a place of the slab.
const NONE: usize = usize::MAX;

/// A list that was longer than this releases its memory when it is empty.
const LARGE: usize = 64;

pub(in crate::event_loop) struct WaitList {
    waiters: Slab<Waiter>,
    first: usize,
    last: usize,
    next_number: u64,
}

struct Waiter {
    number: u64,
    waker: Waker,
    before: usize,
    behind: usize,
}

impl Default for WaitList {
    fn default() -> Self {
        Self {
            waiters: Slab::new(),
            first: NONE,
            last: NONE,
            next_number: 0,
        }
    }
}

impl WaitList {
    pub(in crate::event_loop) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Returns the number of the next waiter. The waiters with lower numbers are waiting already.
    pub(in crate::event_loop) fn next_number(&self) -> u64 {
        self.next_number
    }

    /// Returns the key of a waiter that waits outside of the list, and before all in it.
    #[inline]
    pub(in crate::event_loop) fn new_key_outside(&mut self) -> WaitKey {
        let number = self.next_number;
        self.next_number += 1;
        WaitKey {
            place: NONE,
            number,
        }
    }

    /// Adds a waiter behind all others.
    pub(in crate::event_loop) fn push(&mut self, waker: Waker) -> WaitKey {
        let number = self.next_number;
        self.next_number += 1;
        let before = self.last;
        let place = self.waiters.insert(Waiter {
            number,
            waker,
            before,
            behind: NONE,
        });
        self.link(before, place);
        self.last = place;
        WaitKey { place, number }
    }

    /// Replaces the waker of a waiter and returns the previous one.
    ///
    /// # Errors
    ///
    /// Returns `waker` if the waiter is not in the list any more.
    pub(in crate::event_loop) fn replace(
        &mut self,
        key: WaitKey,
        waker: Waker,
    ) -> Result<Waker, Waker> {
        match self.waiters.get_mut(key.place) {
            Some(waiter) if waiter.number == key.number => {
                Ok(std::mem::replace(&mut waiter.waker, waker))
            }
            _ => Err(waker),
        }
    }

    /// Removes a waiter, if it is still in the list.
    pub(in crate::event_loop) fn remove(&mut self, key: WaitKey) -> Option<Waker> {
        let waiter = self.waiters.get(key.place)?;
        (waiter.number == key.number).then(|| self.take(key.place))
    }

    /// Removes the first waiter if its number is below `limit`.
    pub(in crate::event_loop) fn pop_before(&mut self, limit: u64) -> Option<Waker> {
        let first = self.waiters.get(self.first)?;
        (first.number < limit).then(|| self.take(self.first))
    }

    fn take(&mut self, place: usize) -> Waker {
        let waiter = self.waiters.remove(place);
        self.link(waiter.before, waiter.behind);
        match self.waiters.get_mut(waiter.behind) {
            Some(behind) => behind.before = waiter.before,
            None => self.last = waiter.before,
        }
        if self.waiters.is_empty() && self.waiters.capacity() > LARGE {
            self.waiters = Slab::new();
        }
        waiter.waker
    }

    /// Links `place` behind `before`, or as the first.
    fn link(&mut self, before: usize, place: usize) {
        match self.waiters.get_mut(before) {
            Some(before) => before.behind = place,
            None => self.first = place,
        }
    }

    /// Returns the wakers in the order of their wait.
    pub(in crate::event_loop) fn iter(&self) -> impl Iterator<Item = &Waker> {
        let mut next = self.first;
        std::iter::from_fn(move || {
            let waiter = self.waiters.get(next)?;
            next = waiter.behind;
            Some(&waiter.waker)
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

    /// Returns the data pointers of the wakers, which tell them apart.
    fn names(list: &WaitList) -> Vec<*const ()> {
        list.iter().map(Waker::data).collect()
    }

    #[test]
    fn waiters_come_out_in_the_order_of_their_wait() {
        let mut list = WaitList::default();
        let wakers: Vec<_> = (0..5).map(|_| waker()).collect();
        let keys: Vec<_> = wakers
            .iter()
            .map(|waker| list.push(waker.clone()))
            .collect();
        assert!(list.remove(keys[2]).unwrap().will_wake(&wakers[2]));
        assert!(list.remove(keys[0]).unwrap().will_wake(&wakers[0]));
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
                    assert_eq!(list.remove(key).unwrap().data(), data);
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
}
