//! A value that one guard at a time reaches, by a reference or through an `Rc`: the cell of a lock.
#![allow(
    unsafe_code,
    reason = "a guard that owns its lock cannot be made of a `RefCell`, whose guards borrow it"
)]

use std::cell::{Cell, UnsafeCell};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::rc::Rc;

/// A value and whether a guard has it. It is not `Sync`, so all guards are on one thread.
pub(crate) struct ExclusiveCell<T: ?Sized> {
    is_taken: Cell<bool>,
    value: UnsafeCell<T>,
}

impl<T> ExclusiveCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self {
            is_taken: Cell::new(false),
            value: UnsafeCell::new(value),
        }
    }

    pub(crate) fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> ExclusiveCell<T> {
    /// Returns the value, which no guard can have meanwhile.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Takes the value, unless a guard has it.
    #[inline]
    pub(crate) fn take(&self) -> Option<Exclusive<'_, T>> {
        // Made only if the value is free: the drop of a guard frees it.
        (!self.is_taken.replace(true)).then(|| Exclusive(self))
    }
}

/// The guard of an [`ExclusiveCell`] that borrows it; the drop gives the value back.
// Made by `take` only, so there is one for each time that the flag was set.
pub(crate) struct Exclusive<'a, T: ?Sized>(&'a ExclusiveCell<T>);

impl<T: ?Sized> Deref for Exclusive<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the flag of the cell is set since this guard was made, so there is no other
        // guard. The reference borrows this one, so no exclusive reference exists beside it.
        unsafe { &*self.0.value.get() }
    }
}

impl<T: ?Sized> DerefMut for Exclusive<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; the reference borrows this guard exclusively.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T: ?Sized> Drop for Exclusive<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.is_taken.set(false);
    }
}

/// The guard of an [`ExclusiveCell`] that keeps what the cell is a part of.
pub(crate) struct OwnedExclusive<O: ?Sized, T: ?Sized> {
    /// A part of the value of `owner`, or a static.
    cell: NonNull<ExclusiveCell<T>>,
    owner: Rc<O>,
}

impl<O: ?Sized, T: ?Sized> OwnedExclusive<O, T> {
    /// Takes the value of the cell that `cell` returns, unless a guard has it.
    pub(crate) fn take(owner: Rc<O>, cell: impl FnOnce(&O) -> &ExclusiveCell<T>) -> Option<Self> {
        let cell = cell(&owner);
        if cell.is_taken.replace(true) {
            return None;
        }
        let cell = NonNull::from(cell);
        Some(Self { cell, owner })
    }

    #[inline]
    pub(crate) fn owner(&self) -> &Rc<O> {
        &self.owner
    }

    #[inline]
    fn cell(&self) -> &ExclusiveCell<T> {
        // SAFETY: the function that returned the cell works for any lifetime of the owner's
        // borrow, so the cell is a part of the owner's value or lives for ever. The `Rc` keeps that
        // value in its place, and no other code gets it exclusively while the `Rc` is here.
        unsafe { self.cell.as_ref() }
    }
}

impl<O: ?Sized, T: ?Sized> Deref for OwnedExclusive<O, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: as for `Exclusive`: the flag of the cell is set since this guard was made.
        unsafe { &*self.cell().value.get() }
    }
}

impl<O: ?Sized, T: ?Sized> DerefMut for OwnedExclusive<O, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; the reference borrows this guard exclusively.
        unsafe { &mut *self.cell().value.get() }
    }
}

impl<O: ?Sized, T: ?Sized> Drop for OwnedExclusive<O, T> {
    #[inline]
    fn drop(&mut self) {
        self.cell().is_taken.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::{ExclusiveCell, OwnedExclusive};
    use std::rc::Rc;

    #[test]
    fn one_guard_at_a_time_has_the_value() {
        let mut cell = ExclusiveCell::new(1);
        let mut first = cell.take().unwrap();
        *first += 1;
        assert!(cell.take().is_none());
        assert!(cell.take().is_none(), "a failed attempt changes nothing");
        drop(first);
        assert_eq!(*cell.take().unwrap(), 2);
        std::mem::forget(cell.take());
        assert!(cell.take().is_none());
        *cell.get_mut() = 3;
        assert_eq!(cell.into_inner(), 3);
    }

    #[test]
    fn a_guard_that_owns_its_cell_keeps_it() {
        let owner = Rc::new((0, ExclusiveCell::new(String::from("a"))));
        let mut owned = OwnedExclusive::take(owner.clone(), |owner| &owner.1).unwrap();
        assert!(owner.1.take().is_none());
        assert!(OwnedExclusive::take(owner.clone(), |owner| &owner.1).is_none());
        drop(owner);
        owned.push('b');
        assert_eq!(*owned, "ab");
        let owner = owned.owner().clone();
        drop(owned);
        assert_eq!(*owner.1.take().unwrap(), "ab");
    }

    #[test]
    fn the_value_may_be_unsized() {
        let cell: Box<ExclusiveCell<[u8]>> = Box::new(ExclusiveCell::new([1, 2]));
        cell.take().unwrap()[0] = 3;
        assert_eq!(*cell.take().unwrap(), [3, 2]);
    }
}
