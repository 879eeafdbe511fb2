//! A table of pointers on one thread, used through a shared reference.
//!
//! ```text
//!   places  [ pointer | 2 << 1 | 1 | none << 1 | 1 | pointer ]     first free place: 1
//! ```
//!
//! A place takes one word: a pointer, or the number of the next free place, distinguished by the
//! lowest bit.
// Marks: each event looks its source up (row `tcp_echo/50x64`); a source that is closed meanwhile
// is `cold`.
#![allow(
    unsafe_code,
    reason = "every event looks its source up, and every task is in a table: the flag of a `RefCell` and a tag of their own are half of that"
)]

use std::cell::{Cell, RefCell, UnsafeCell};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::{self, NonNull};
use std::rc::Rc;

/// A value that is one pointer, to something that is aligned to two bytes at least.
pub(crate) trait Pointer: Clone {
    fn into_raw(self) -> NonNull<()>;

    /// Returns the value of a pointer from [`into_raw`](Self::into_raw).
    ///
    /// # Safety
    ///
    /// It may be called once for each call of `into_raw`.
    unsafe fn from_raw(raw: NonNull<()>) -> Self;
}

impl<T> Pointer for Rc<T> {
    #[inline]
    fn into_raw(self) -> NonNull<()> {
        const { assert!(align_of::<T>() >= 2) };
        // SAFETY: the pointer of an `Rc` is not null.
        unsafe { NonNull::new_unchecked(Self::into_raw(self).cast_mut().cast()) }
    }

    #[inline]
    unsafe fn from_raw(raw: NonNull<()>) -> Self {
        // SAFETY: the pointer is from `Rc::into_raw`, and the caller takes its count once.
        unsafe { Self::from_raw(raw.as_ptr().cast()) }
    }
}

/// Values by slot number; the number of a removed value is reused. The table returns values and
/// never references to its contents, so no two uses of it overlap.
pub(crate) struct Slots<T: Pointer> {
    places: UnsafeCell<Vec<Slot>>,
    /// The number of the first free place, or [`NONE`].
    free: Cell<usize>,
    _values: PhantomData<T>,
}

/// A pointer from [`Pointer::into_raw`], which the table owns, or the number of the next free
/// place.
#[derive(Clone, Copy)]
struct Slot(NonNull<()>);

/// Stands for the place after the last free one. No table is as long.
const NONE: usize = usize::MAX >> 1;

/// No table is longer. Every number fits into 32 bits, and the two largest stand for no value.
const MOST: usize = u32::MAX as usize - 1;

impl Slot {
    fn free(next: usize) -> Self {
        let tagged = ptr::without_provenance_mut(next << 1 | 1);
        Self(NonNull::new(tagged).expect("an odd number is not zero"))
    }

    fn next_free(self) -> usize {
        self.0.addr().get() >> 1
    }

    fn value(self) -> Option<NonNull<()>> {
        let is_free = self.0.addr().get() & 1 != 0;
        (!is_free).then_some(self.0)
    }
}

impl<T: Pointer> Slots<T> {
    pub(crate) const fn new() -> Self {
        Self {
            places: UnsafeCell::new(Vec::new()),
            free: Cell::new(NONE),
            _values: PhantomData,
        }
    }

    /// Calls `f` with the places. `f` must not run code of `T`, which may use the table.
    #[inline]
    fn with<R>(&self, f: impl FnOnce(&mut Vec<Slot>) -> R) -> R {
        // SAFETY: the type is not `Sync`, and no other reference is in use: each ends within a call
        // of this function, and `f` calls it for no table.
        f(unsafe { &mut *self.places.get() })
    }

    /// Returns the number that the next value gets.
    #[inline]
    pub(crate) fn next(&self) -> usize {
        match self.free.get() {
            NONE => self.with(|places| places.len()),
            free => free,
        }
    }

    /// Adds a value under the [next](Self::next) number.
    #[inline]
    pub(crate) fn insert(&self, value: T) {
        let pointer = Slot(value.into_raw());
        debug_assert!(pointer.value().is_some(), "the pointer is aligned");
        self.with(|places| match places.get_mut(self.free.get()) {
            Some(place) => {
                self.free.set(place.next_free());
                *place = pointer;
            }
            None => {
                assert!(places.len() < MOST, "a table has fewer than 2^32 values");
                places.push(pointer);
            }
        });
    }

    /// Returns the pointer of a value. The value may be gone when it is used.
    #[inline]
    fn pointer(&self, slot: usize) -> Option<NonNull<()>> {
        self.with(|places| places.get(slot)?.value())
    }

    #[inline]
    pub(crate) fn get(&self, slot: usize) -> Option<T> {
        let raw = self.pointer(slot)?;
        // SAFETY: the table owns the pointer, and keeps its count: this value is not dropped. Its
        // clone is made when no reference to the places is left.
        let value = ManuallyDrop::new(unsafe { T::from_raw(raw) });
        Some(T::clone(&value))
    }

    #[inline]
    pub(crate) fn remove(&self, slot: usize) -> Option<T> {
        let raw = self.with(|places| {
            let place = places.get_mut(slot)?;
            let raw = place.value()?;
            *place = Slot::free(self.free.get());
            self.free.set(slot);
            Some(raw)
        })?;
        // SAFETY: the pointer was in the table, and is no longer.
        Some(unsafe { T::from_raw(raw) })
    }

    /// Returns all values, in the order of their numbers.
    pub(crate) fn list(&self) -> Vec<T> {
        let slots = 0..self.with(|places| places.len());
        slots.filter_map(|slot| self.get(slot)).collect()
    }

    /// Takes all values out of the table.
    pub(crate) fn take(&self) -> Vec<T> {
        let slots = 0..self.with(|places| places.len());
        slots.filter_map(|slot| self.remove(slot)).collect()
    }
}

impl<T: Pointer> Drop for Slots<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// A table of shared values that keeps what is removed, as long as a user holds the table. So a
/// batch of lookups needs no reference count for each.
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
    use super::{HeldSlots, Slots};
    use std::cell::Cell;
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
        assert_eq!(slots.remove(0), Some(Rc::new(0)));
        assert_eq!(slots.next(), 0, "the last one that was freed");
        slots.insert(Rc::new(5));
        assert_eq!(slots.next(), 1);
        slots.insert(Rc::new(7));
        assert_eq!(slots.next(), 3);
        assert_eq!(slots.get(3), None);
        let values: Vec<_> = slots.list().iter().map(|value| **value).collect();
        assert_eq!(values, [5, 7, 2]);
        assert_eq!(slots.take(), [5, 7, 2].map(Rc::new));
        assert_eq!(slots.get(0), None);
        assert_eq!(slots.list(), []);
    }

    #[test]
    fn values_are_counted() {
        let slots = Slots::new();
        let value = Rc::new(1);
        slots.insert(value.clone());
        slots.insert(value.clone());
        let got = slots.get(1);
        assert_eq!(Rc::strong_count(&value), 4);
        drop((got, slots.remove(0)));
        assert_eq!(Rc::strong_count(&value), 2);
        drop(slots);
        assert_eq!(Rc::strong_count(&value), 1);
    }

    /// A value may use the table while it is dropped.
    #[test]
    fn a_value_may_use_the_table_when_it_is_dropped() {
        struct Value(Rc<Slots<Rc<Self>>>, bool);
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
