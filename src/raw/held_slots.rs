//! A table of shared values that keeps what is removed, as long as a user holds the table. So a
//! batch of lookups needs no reference count for each.
#![allow(
    unsafe_code,
    reason = "every event looks its source up: the reference count would be a part of that"
)]

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::slots::Slots;

/// Values by slot number; the number of a removed value is reused.
pub(crate) struct HeldSlots<T> {
    slots: Slots<Rc<T>>,
    /// The number of [`Held`]s.
    holds: Cell<usize>,
    /// What was removed while the table was held.
    removed: RefCell<Vec<Rc<T>>>,
    /// Whether something was.
    has_removed: Cell<bool>,
}

impl<T> HeldSlots<T> {
    pub(crate) const fn new() -> Self {
        Self {
            slots: Slots::new(),
            holds: Cell::new(0),
            removed: RefCell::new(Vec::new()),
            has_removed: Cell::new(false),
        }
    }

    /// Returns the number that the next value gets.
    pub(crate) fn next(&self) -> usize {
        self.slots.next()
    }

    /// Adds a value under the [next](Self::next) number.
    pub(crate) fn insert(&self, value: Rc<T>) {
        self.slots.insert(value);
    }

    /// Gives references to the values until the result is dropped. Values that are removed
    /// meanwhile stay in memory until then.
    #[inline(always)]
    pub(crate) fn hold(&self) -> Held<'_, T> {
        self.holds.set(self.holds.get() + 1);
        Held { table: self }
    }

    pub(crate) fn remove(&self, slot: usize) {
        self.drop_or_keep(self.slots.remove(slot));
    }

    /// Returns all values, in the order of their numbers.
    pub(crate) fn list(&self) -> Vec<Rc<T>> {
        self.slots.list()
    }

    /// Removes all values and returns them.
    pub(crate) fn take(&self) -> Vec<Rc<T>> {
        let values = self.slots.take();
        self.drop_or_keep(values.iter().cloned());
        values
    }

    /// Keeps values that have left the table, if it is held.
    fn drop_or_keep(&self, values: impl IntoIterator<Item = Rc<T>>) {
        if self.holds.get() > 0 {
            self.removed.borrow_mut().extend(values);
            self.has_removed.set(true);
        }
    }

    /// Drops what was removed. The drop of a value may use the table; nothing is borrowed then.
    #[cold]
    #[inline(never)]
    fn drop_removed(&self) {
        self.has_removed.set(false);
        drop(self.removed.take());
    }
}

/// Gives references to the values of a table.
pub(crate) struct Held<'a, T> {
    table: &'a HeldSlots<T>,
}

impl<T> Held<'_, T> {
    #[inline(always)]
    pub(crate) fn get(&self, slot: usize) -> Option<&T> {
        let value = self.table.slots.pointer(slot)?;
        // SAFETY: the pointer is that of an `Rc` in the table, which points to a `T`. It is not
        // freed before `self` is dropped: what leaves the table until then is in `removed`.
        Some(unsafe { value.cast().as_ref() })
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        let table = self.table;
        table.holds.set(table.holds.get() - 1);
        if table.holds.get() == 0 && table.has_removed.get() {
            table.drop_removed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::HeldSlots;
    use std::cell::Cell;
    use std::rc::Rc;

    #[test]
    fn a_removed_value_lives_as_long_as_the_table_is_held() {
        let slots = HeldSlots::new();
        let values = [Rc::new(Cell::new(1)), Rc::new(Cell::new(2))];
        for value in &values {
            slots.insert(value.clone());
        }
        let held = slots.hold();
        let (first, second) = (held.get(0).unwrap(), held.get(1).unwrap());
        let inner = slots.hold();
        slots.remove(0);
        drop(slots.take());
        drop(inner);
        first.set(first.get() + second.get());
        assert_eq!(values.each_ref().map(Rc::strong_count), [2, 2]);
        assert!(held.get(0).is_none(), "it is not in the table any more");
        drop(held);
        assert_eq!(values.each_ref().map(Rc::strong_count), [1, 1]);
        assert_eq!(values[0].get(), 3);
        let slot = slots.next();
        slots.insert(values[0].clone());
        slots.remove(slot);
        assert_eq!(Rc::strong_count(&values[0]), 1, "the table is not held");
    }
}
