//! Counts of an [`Arc`] that its owner thread lends and takes back without locked instructions.
// Marks: each task borrows one and gives it back (row `spawn_join`).
#![allow(
    unsafe_code,
    reason = "a count that is put aside and taken again belongs to no value meanwhile"
)]

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

/// A value whose counts are lent.
pub(crate) trait Stocked: Sized {
    /// Calls `f` with a stock of this thread, if it has one.
    fn with_stock<R>(f: impl FnOnce(Option<&Stock<Self>>) -> R) -> R;
}

/// An [`Arc`] with counts that are not used at the moment.
pub(crate) struct Stock<T> {
    value: Arc<T>,
    /// The number of counts that belong to this stock besides that of `value`.
    spare: Cell<usize>,
}

impl<T> Stock<T> {
    pub(crate) fn new(value: Arc<T>) -> Self {
        Self {
            value,
            spare: Cell::new(0),
        }
    }

    /// Takes a spare count. The atomic one is changed only if there is none.
    #[inline(always)]
    fn take(&self) -> Arc<T> {
        match self.spare.get().checked_sub(1) {
            Some(left) => {
                self.spare.set(left);
                // SAFETY: the count is one that `put_back` has taken from an `Arc` of this value,
                // and is used once: it is no longer among the spare ones.
                unsafe { Arc::from_raw(Arc::as_ptr(&self.value)) }
            }
            None => self.value.clone(),
        }
    }

    /// Keeps the count of `one`, if it is one of this value.
    #[inline(always)]
    fn put_back(&self, one: Arc<T>) {
        if Arc::ptr_eq(&self.value, &one) {
            // The count belongs to this stock from now on.
            std::mem::forget(one);
            self.spare.set(self.spare.get() + 1);
        }
    }
}

impl<T> Drop for Stock<T> {
    fn drop(&mut self) {
        for _ in 0..self.spare.get() {
            drop(self.take());
        }
    }
}

/// An [`Arc`] that goes back to the stock of its thread, if that is a stock of the same value.
pub(crate) struct Lent<T: Stocked> {
    pub(crate) value: ManuallyDrop<Arc<T>>,
}

impl<T: Stocked> Lent<T> {
    #[inline(always)]
    pub(crate) fn new(stock: &Stock<T>) -> Self {
        Self {
            value: ManuallyDrop::new(stock.take()),
        }
    }
}

impl<T: Stocked> Deref for Lent<T> {
    type Target = Arc<T>;

    #[inline]
    fn deref(&self) -> &Arc<T> {
        &self.value
    }
}

impl<T: Stocked> Drop for Lent<T> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the value is not used afterwards.
        let one = unsafe { ManuallyDrop::take(&mut self.value) };
        T::with_stock(|stock| match stock {
            Some(stock) => stock.put_back(one),
            None => drop(one),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Lent, Stock, Stocked};
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::thread;

    struct Value;

    thread_local! {
        static HERE: RefCell<Option<Rc<Stock<Value>>>> = const { RefCell::new(None) };
    }

    impl Stocked for Value {
        fn with_stock<R>(f: impl FnOnce(Option<&Stock<Self>>) -> R) -> R {
            let here = HERE.with_borrow(Clone::clone);
            f(here.as_deref())
        }
    }

    fn stock() -> (Arc<Value>, Rc<Stock<Value>>) {
        let value = Arc::new(Value);
        (value.clone(), Rc::new(Stock::new(value)))
    }

    #[test]
    fn counts_go_back_to_their_own_stock_and_end_with_it() {
        let (value, own) = stock();
        let (other_value, other) = stock();
        HERE.set(Some(own.clone()));
        let lent: Vec<_> = (0..3).map(|_| Lent::new(&own)).collect();
        assert_eq!(Arc::strong_count(&value), 5);
        drop(lent);
        assert_eq!((own.spare.get(), Arc::strong_count(&value)), (3, 5));
        let again = Lent::new(&own);
        assert_eq!((own.spare.get(), Arc::strong_count(&value)), (2, 5));
        drop(Lent::new(&other));
        assert_eq!((own.spare.get(), Arc::strong_count(&other_value)), (2, 2));
        HERE.set(None);
        drop(own);
        assert_eq!(Arc::strong_count(&value), 2, "what is lent stays counted");
        drop(again);
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn a_count_that_ends_on_another_thread_is_given_up_there() {
        let (value, own) = stock();
        HERE.set(Some(own.clone()));
        let lent = Lent::new(&own);
        thread::spawn(move || drop(lent)).join().unwrap();
        assert_eq!((own.spare.get(), Arc::strong_count(&value)), (0, 2));
        HERE.set(None);
    }
}
