//! A table of shared values on one thread, used through a shared reference.
#![allow(
    unsafe_code,
    reason = "every event looks its source up: the flag of a `RefCell` is a third of that"
)]

use std::cell::Cell;
use std::rc::Rc;

use slab::Slab;

/// Values by slot number; the number of a removed value is reused. The table returns `Rc`s and
/// never references to its contents, so no two uses of it overlap.
pub(crate) struct Slots<T> {
    slab: Cell<Slab<Rc<T>>>,
}

impl<T> Slots<T> {
    pub(crate) const fn new() -> Self {
        Self {
            slab: Cell::new(Slab::new()),
        }
    }

    /// Calls `f` with the values, which are out of the table meanwhile: `f` must run no code of
    /// `T`.
    fn with<R>(&self, f: impl FnOnce(&mut Slab<Rc<T>>) -> R) -> R {
        let mut slab = self.slab.take();
        let result = f(&mut slab);
        self.slab.set(slab);
        result
    }

    /// Returns the number that the next value gets.
    pub(crate) fn next(&self) -> usize {
        self.with(|slab| slab.vacant_key())
    }

    /// Adds a value under the [next](Self::next) number.
    pub(crate) fn insert(&self, value: Rc<T>) {
        self.with(|slab| slab.insert(value));
    }

    #[inline(always)]
    pub(crate) fn get(&self, slot: usize) -> Option<Rc<T>> {
        // SAFETY: the type is not `Sync`, and no other reference is in use: each ends within its
        // call, and cloning an `Rc` runs no code of `T`.
        unsafe { &*self.slab.as_ptr() }.get(slot).cloned()
    }

    pub(crate) fn remove(&self, slot: usize) -> Option<Rc<T>> {
        self.with(|slab| slab.try_remove(slot))
    }

    /// Returns all values.
    pub(crate) fn list(&self) -> Vec<Rc<T>> {
        self.with(|slab| slab.iter().map(|(_, value)| value.clone()).collect())
    }

    /// Takes all values out of the table.
    pub(crate) fn take(&self) -> Slab<Rc<T>> {
        self.slab.take()
    }
}

#[cfg(test)]
mod tests {
    use super::Slots;
    use std::rc::Rc;

    #[test]
    fn a_number_is_given_again_when_its_value_is_gone() {
        let slots = Slots::new();
        for value in 0..3 {
            assert_eq!(slots.next(), value);
            slots.insert(Rc::new(value));
        }
        assert_eq!(slots.remove(1), Some(Rc::new(1)));
        assert_eq!(slots.get(1), None);
        assert_eq!(slots.remove(1), None);
        assert_eq!(slots.next(), 1);
        slots.insert(Rc::new(7));
        assert_eq!(slots.list().len(), 3);
        let values: Vec<_> = slots.take().into_iter().map(|(_, value)| *value).collect();
        assert_eq!(values, [0, 7, 2]);
        assert_eq!(slots.get(0), None);
    }

    /// A value may use the table while it is dropped.
    #[test]
    fn a_value_may_use_the_table_when_it_is_dropped() {
        struct Value(Rc<Slots<Self>>, bool);
        impl Drop for Value {
            fn drop(&mut self) {
                if self.1 {
                    self.0.insert(Rc::new(Self(self.0.clone(), false)));
                }
            }
        }
        let slots = Rc::new(Slots::new());
        slots.insert(Rc::new(Value(slots.clone(), true)));
        drop(slots.remove(0));
        assert!(slots.get(0).is_some_and(|value| !value.1));
        drop(slots.take());
        assert!(slots.get(0).is_none());
    }
}
