//! The table of the subscribers of one kind (signal listeners, children, file watches): by key, in
//! the order of start, with the events that are due to them.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use crate::sorted::{SortedMap, sorted_by_number};

/// A table of `T`s by key `K`, and the events `E` that are due to them.
pub(crate) struct Subscribers<K, T, E> {
    started: RefCell<SortedMap<(K, u64), Rc<T>>>,
    next_place: Cell<u64>,
    due: RefCell<VecDeque<(Rc<T>, E)>>,
}

impl<K, T, E> Default for Subscribers<K, T, E> {
    fn default() -> Self {
        Self {
            started: RefCell::default(),
            next_place: Cell::new(0),
            due: RefCell::default(),
        }
    }
}

#[allow(dead_code, reason = "each kind of subscriber needs some of them")]
impl<K: Copy + Ord, T, E> Subscribers<K, T, E> {
    /// Returns the place of the next subscriber in the order of start.
    pub(crate) fn next_place(&self) -> u64 {
        self.next_place.get()
    }

    /// Adds a subscriber at the [next place](Self::next_place), and returns it with its key.
    pub(crate) fn insert(&self, key: K, subscriber: Rc<T>) -> (K, u64) {
        let place = self.next_place.get();
        self.next_place.set(place + 1);
        self.started.borrow_mut().insert((key, place), subscriber);
        (key, place)
    }

    pub(crate) fn remove(&self, key: (K, u64)) -> Option<Rc<T>> {
        self.started.borrow_mut().remove(key)
    }

    pub(crate) fn get(&self, key: (K, u64)) -> Option<Rc<T>> {
        self.started.borrow().get(key).cloned()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.started.borrow().is_empty()
    }

    /// Returns whether a subscriber has the key `key`.
    pub(crate) fn has(&self, key: K) -> bool {
        let started = self.started.borrow();
        let first = started.starting_at((key, 0)).next();
        first.is_some_and(|((found, _), _)| found == key)
    }

    /// Calls `f` with the subscribers of a key and their places, in the order of start. `f` runs no
    /// user code.
    pub(crate) fn each(&self, key: K, mut f: impl FnMut(u64, &Rc<T>)) {
        let started = self.started.borrow();
        let of_key = started.starting_at((key, 0));
        for ((_, place), subscriber) in of_key.take_while(|((found, _), _)| *found == key) {
            f(place, subscriber);
        }
    }

    /// Returns all subscribers in the order of start.
    pub(crate) fn list(&self) -> Vec<Rc<T>> {
        let started = self.started.borrow();
        let by_place = started.iter().map(|((_, place), one)| (place, one.clone()));
        sorted_by_number(by_place)
    }

    /// Removes all subscribers and returns them in the order of start. Drops the events due to
    /// them.
    pub(crate) fn take(&self) -> Vec<Rc<T>> {
        let all = self.list();
        drop(self.started.take());
        drop(self.due.take());
        all
    }

    /// Adds an event behind those that are due.
    pub(crate) fn push_due(&self, subscriber: Rc<T>, event: E) {
        self.due.borrow_mut().push_back((subscriber, event));
    }

    /// Takes the first event that is due.
    pub(crate) fn pop_due(&self) -> Option<(Rc<T>, E)> {
        self.due.borrow_mut().pop_front()
    }

    /// Returns the subscriber of the first event that is due.
    pub(crate) fn first_due(&self) -> Option<Rc<T>> {
        let due = self.due.borrow();
        due.front().map(|(subscriber, _)| subscriber.clone())
    }

    pub(crate) fn has_due(&self) -> bool {
        !self.due.borrow().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::Subscribers;
    use std::rc::Rc;

    #[test]
    fn subscribers_are_listed_in_the_order_of_start_and_found_by_key() {
        let table: Subscribers<u8, &str, ()> = Subscribers::default();
        let second = table.insert(2, Rc::new("a"));
        table.insert(1, Rc::new("b"));
        table.insert(2, Rc::new("c"));
        assert_eq!(table.list(), ["a", "b", "c"].map(Rc::new));
        let mut found = Vec::new();
        table.each(2, |place, one| found.push((place, **one)));
        assert_eq!(found, [(0, "a"), (2, "c")]);
        assert_eq!(table.remove(second), Some(Rc::new("a")));
        assert!(table.get(second).is_none() && table.has(2));
        assert_eq!(table.next_place(), 3, "a place is used once");
    }

    #[test]
    fn events_are_due_in_the_order_they_came_and_go_with_the_table() {
        let table: Subscribers<(), &str, u8> = Subscribers::default();
        let one = Rc::new("a");
        table.insert((), one.clone());
        table.push_due(one.clone(), 1);
        table.push_due(one.clone(), 2);
        assert_eq!(table.first_due(), Some(one.clone()));
        assert_eq!(table.pop_due(), Some((one.clone(), 1)));
        assert!(table.has_due());
        assert_eq!(table.take(), [one]);
        assert!(table.is_empty() && !table.has_due());
    }
}
