//! A queue for one thread, used through shared references, whose push and pop take a few
//! instructions.
//!
//! ```text
//!   buffer  [ d | e | . | . | . | a | b | c ]     8 places, mask 7
//!                   ^tail           ^head          head and tail only grow; `& mask` wraps
//! ```
// Marks: each wake is a push, and each poll a pop (row `ping_pong`); growth is `cold`.
#![allow(
    unsafe_code,
    reason = "every wake of a task is one push and one pop: bounds checks and the flag of a `RefCell` are half of that"
)]

use std::cell::Cell;
use std::mem::MaybeUninit;

/// The capacity of a new ring and of a shrunk one, a power of two.
const SMALLEST: usize = 16;

/// A FIFO queue. It returns values, never references, so no two uses overlap.
pub(crate) struct Ring<T> {
    /// The buffer, created by `allocate`, with `mask + 1` places. Those from `head` up to `tail`
    /// (each `& mask`) hold values.
    buffer: Cell<*mut MaybeUninit<T>>,
    /// One less than the capacity, which is a power of two.
    mask: Cell<usize>,
    /// The number of values popped so far, modulo 2^64.
    head: Cell<usize>,
    /// The number of values pushed so far, modulo 2^64.
    tail: Cell<usize>,
}

/// Allocates a buffer of `capacity` places without values.
fn allocate<T>(capacity: usize) -> *mut MaybeUninit<T> {
    debug_assert!(capacity.is_power_of_two());
    Box::into_raw(Box::<[T]>::new_uninit_slice(capacity)).cast()
}

impl<T> Ring<T> {
    pub(crate) fn new() -> Self {
        Self {
            buffer: Cell::new(allocate(SMALLEST)),
            mask: Cell::new(SMALLEST - 1),
            head: Cell::new(0),
            tail: Cell::new(0),
        }
    }

    /// Returns the number of values.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.tail.get().wrapping_sub(self.head.get())
    }

    /// Returns the number of places.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.mask.get() + 1
    }

    /// Returns the number of values popped so far.
    pub(crate) fn popped(&self) -> u64 {
        self.head.get() as u64
    }

    /// Returns the number of the oldest value. Values are numbered in the order of their push, and
    /// keep their numbers.
    #[inline]
    pub(crate) fn first(&self) -> usize {
        self.head.get()
    }

    /// Returns the number of the value that is pushed next.
    #[inline]
    pub(crate) fn next(&self) -> usize {
        self.tail.get()
    }

    /// Replaces the value with this number and returns it, or `None` if it was popped.
    pub(crate) fn replace(&self, number: usize, value: T) -> Option<T> {
        if number.wrapping_sub(self.head.get()) >= self.len() {
            return None;
        }
        let place = number & self.mask.get();
        // SAFETY: the number is between head and tail, so its place holds a value, which is read
        // once: the new one takes its place.
        Some(unsafe {
            let before = self
                .buffer
                .get()
                .add(place)
                .replace(MaybeUninit::new(value));
            before.assume_init()
        })
    }

    /// Returns zero if and only if the ring is empty. Callers combine it with other counts by
    /// bitwise or.
    #[inline]
    pub(crate) fn rest(&self) -> usize {
        self.tail.get() ^ self.head.get()
    }

    /// Appends a value, or returns it if the ring is full.
    #[inline(always)]
    pub(crate) fn try_push(&self, value: T) -> Result<(), T> {
        let (tail, mask) = (self.tail.get(), self.mask.get());
        if tail.wrapping_sub(self.head.get()) > mask {
            return Err(value);
        }
        // SAFETY: the index is below the capacity by `& mask`, and its place is free, since fewer
        // than `mask + 1` places hold values.
        unsafe {
            self.buffer
                .get()
                .add(tail & mask)
                .write(MaybeUninit::new(value))
        };
        self.tail.set(tail.wrapping_add(1));
        Ok(())
    }

    /// Appends a value. A full ring grows.
    #[inline]
    pub(crate) fn push(&self, value: T) {
        if let Err(value) = self.try_push(value) {
            self.push_grown(value);
        }
    }

    #[cold]
    fn push_grown(&self, value: T) {
        self.resize((self.mask.get() + 1) * 2);
        let pushed = self.try_push(value);
        debug_assert!(pushed.is_ok(), "a ring that has grown has places");
    }

    /// Removes the oldest value.
    #[inline(always)]
    pub(crate) fn pop(&self) -> Option<T> {
        let head = self.head.get();
        if head == self.tail.get() {
            return None;
        }
        self.head.set(head.wrapping_add(1));
        Some(self.take_out(head))
    }

    /// Removes the youngest value.
    pub(crate) fn pop_last(&self) -> Option<T> {
        if self.rest() == 0 {
            return None;
        }
        let last = self.tail.get().wrapping_sub(1);
        self.tail.set(last);
        Some(self.take_out(last))
    }

    /// Moves the value with this number out. Head or tail has just moved past it.
    #[inline(always)]
    fn take_out(&self, number: usize) -> T {
        let place = number & self.mask.get();
        // SAFETY: both callers have found the number between head and tail, so its place holds a
        // value. They have moved head or tail past it, so it is read once.
        unsafe { self.buffer.get().add(place).read().assume_init() }
    }

    /// Releases the memory of a burst: an empty ring with more than `kept` places is shrunk.
    /// Returns whether it was.
    #[inline(always)]
    pub(crate) fn shrink(&self, kept: usize) -> bool {
        let shrinks = self.mask.get() >= kept && self.rest() == 0;
        if shrinks {
            self.resize(SMALLEST);
        }
        shrinks
    }

    /// Removes all values, in order.
    pub(crate) fn take(&self) -> Vec<T> {
        std::iter::from_fn(|| self.pop()).collect()
    }

    /// Moves the values to a buffer of another capacity, a power of two that is large enough.
    #[cold]
    fn resize(&self, capacity: usize) {
        let length = self.len();
        assert!(length <= capacity);
        let grown = allocate::<T>(capacity);
        for offset in 0..length {
            let number = self.head.get().wrapping_add(offset);
            let (from, to) = (number & self.mask.get(), number & (capacity - 1));
            // SAFETY: `from` is the place of a value, `to` is below the new capacity, and the
            // buffers do not overlap. The value is moved: the old buffer is freed without dropping
            // its values.
            unsafe {
                grown
                    .add(to)
                    .copy_from_nonoverlapping(self.buffer.get().add(from), 1)
            };
        }
        self.free();
        self.buffer.set(grown);
        self.mask.set(capacity - 1);
    }

    /// Frees the buffer without dropping values. The caller sets another buffer, or never uses the
    /// ring again.
    fn free(&self) {
        let places = std::ptr::slice_from_raw_parts_mut(self.buffer.get(), self.mask.get() + 1);
        // SAFETY: the buffer was created by `allocate` with this capacity, and is freed once.
        drop(unsafe { Box::from_raw(places) });
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        struct Free<'a, T>(&'a Ring<T>);
        impl<T> Drop for Free<'_, T> {
            fn drop(&mut self) {
                self.0.free();
            }
        }
        // The buffer is freed even if the drop of a value panics.
        let _free = Free(self);
        while self.pop().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::{Ring, SMALLEST};
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::rc::Rc;

    #[test]
    fn values_come_out_in_the_order_in_which_they_went_in() {
        let ring = Ring::new();
        assert_eq!((ring.len(), ring.rest()), (0, 0));
        for value in 0..1000 {
            ring.push(Box::new(value));
        }
        assert_eq!(ring.len(), 1000);
        assert_ne!(ring.rest(), 0);
        for value in 0..500 {
            assert_eq!(ring.pop(), Some(Box::new(value)));
        }
        assert_eq!(ring.take(), (500..1000).map(Box::new).collect::<Vec<_>>());
        assert_eq!((ring.pop(), ring.len(), ring.rest()), (None, 0, 0));
    }

    #[test]
    fn a_full_ring_gives_the_value_back() {
        let ring = Ring::new();
        for value in 0..SMALLEST {
            assert_eq!(ring.try_push(value), Ok(()));
        }
        assert_eq!(ring.try_push(99), Err(99));
        assert_eq!(ring.pop(), Some(0));
        assert_eq!(ring.try_push(SMALLEST), Ok(()));
        assert_eq!(ring.try_push(99), Err(99));
        assert_eq!(ring.take(), (1..=SMALLEST).collect::<Vec<_>>());
    }

    #[test]
    fn a_value_is_replaced_by_its_number_until_it_is_popped() {
        let ring = Ring::new();
        for shift in 0..2 * SMALLEST {
            let first = ring.first();
            assert_eq!((first, ring.next()), (shift, shift));
            for value in 0..3 {
                ring.push(Box::new(value));
            }
            assert_eq!(ring.replace(first + 1, Box::new(7)), Some(Box::new(1)));
            assert_eq!(ring.replace(first + 3, Box::new(9)), None, "not pushed yet");
            assert_eq!(ring.pop(), Some(Box::new(0)));
            assert_eq!(ring.replace(first, Box::new(9)), None, "popped");
            assert_eq!(ring.take(), [7, 2].map(Box::new));
            // The next round begins one place later.
            ring.head.set(shift + 1);
            ring.tail.set(shift + 1);
        }
    }

    /// For each position of the head, the values wrap around the end of the buffer at another
    /// point.
    #[test]
    fn a_ring_grows_with_its_head_at_any_place() {
        for shift in 0..2 * SMALLEST {
            let ring = Ring::new();
            for value in 0..shift {
                ring.push(Rc::new(value));
                assert_eq!(ring.pop().as_deref(), Some(&value));
            }
            for value in 0..3 * SMALLEST {
                ring.push(Rc::new(value));
            }
            let taken = ring.take();
            let values: Vec<_> = taken.iter().map(|value| **value).collect();
            assert_eq!(values, (0..3 * SMALLEST).collect::<Vec<_>>());
            assert!(taken.iter().all(|value| Rc::strong_count(value) == 1));
        }
    }

    #[test]
    fn a_ring_works_where_its_counters_overflow() {
        let ring = Ring::new();
        ring.head.set(usize::MAX - 3);
        ring.tail.set(usize::MAX - 3);
        for value in 0..SMALLEST {
            assert_eq!(ring.try_push(value), Ok(()));
        }
        assert_eq!(ring.try_push(99), Err(99));
        assert_eq!(ring.len(), SMALLEST);
        ring.push(SMALLEST);
        assert_eq!(ring.take(), (0..=SMALLEST).collect::<Vec<_>>());
    }

    #[test]
    fn an_empty_ring_gives_the_memory_of_a_burst_back() {
        let ring = Ring::new();
        for value in 0..1000 {
            ring.push(Box::new(value));
        }
        assert!(!ring.shrink(100), "it is not empty");
        assert_eq!(ring.capacity(), 1024);
        drop(ring.take());
        assert!(!ring.shrink(1024), "so much is kept");
        assert_eq!(ring.capacity(), 1024);
        assert!(ring.shrink(1023));
        assert_eq!(ring.capacity(), SMALLEST);
        ring.push(Box::new(7));
        assert_eq!(ring.pop(), Some(Box::new(7)));
    }

    /// Counts its drops, and panics in one of them if asked to.
    struct Value(Rc<Cell<usize>>, bool);

    impl Drop for Value {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            assert!(!self.1, "a drop");
        }
    }

    #[test]
    fn a_ring_drops_its_values_once() {
        let drops = Rc::<Cell<usize>>::default();
        let ring = Ring::new();
        for _ in 0..100 {
            ring.push(Value(drops.clone(), false));
        }
        drop(ring.pop());
        assert_eq!(drops.get(), 1);
        drop(ring);
        assert_eq!(drops.get(), 100);
        assert_eq!(Rc::strong_count(&drops), 1);
    }

    #[test]
    fn a_ring_whose_value_panics_in_its_drop_frees_its_buffer() {
        let drops = Rc::<Cell<usize>>::default();
        let ring = Ring::new();
        ring.push(Value(drops.clone(), true));
        let unwound = catch_unwind(AssertUnwindSafe(|| drop(ring)));
        assert!(unwound.is_err());
        assert_eq!(drops.get(), 1);
    }

    /// A value that uses its ring while it is dropped finds the ring consistent.
    #[test]
    fn a_value_may_use_the_ring_when_it_is_dropped() {
        struct Item(Rc<Ring<Self>>, u32);
        impl Drop for Item {
            fn drop(&mut self) {
                if self.1 > 0 {
                    self.0.push(Self(self.0.clone(), self.1 - 1));
                }
            }
        }
        let ring = Rc::new(Ring::new());
        ring.push(Item(ring.clone(), 3));
        let mut popped = 0;
        while let Some(item) = ring.pop() {
            drop(item);
            popped += 1;
        }
        assert_eq!(popped, 4);
    }
}
