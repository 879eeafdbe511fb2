//! The waiters of one direction of a source: a slot for the last caller of `poll_*` functions, and
//! a list of futures.

use std::cell::{Cell, OnceCell, RefCell};
use std::task::Waker;

use super::wait_list::{WaitKey, WaitList};

/// The waiters of one direction.
#[derive(Default)]
pub(crate) struct Waiters {
    /// The waker of the last caller of a `poll_*` function. It stays here after it was woken: the
    /// task will probably wait again, which then costs a comparison in place of a clone.
    slot: Cell<Option<Waker>>,
    /// The waiting futures, boxed: a stream that is read through `poll_*` has none.
    futures: OnceCell<Box<RefCell<WaitList>>>,
    /// The kinds of waiters: [`SLOT`], [`FUTURES`], both or none.
    waiting: Cell<u8>,
}

/// The waker in the slot is waiting.
const SLOT: u8 = 1;
/// Futures are waiting.
const FUTURES: u8 = 2;

impl Waiters {
    #[inline]
    pub(crate) fn has_waiters(&self) -> bool {
        self.waiting.get() != 0
    }

    #[inline]
    pub(crate) fn have_futures(&self) -> bool {
        self.waiting.get() & FUTURES != 0
    }

    #[inline]
    fn set_waiting(&self, who: u8, waits: bool) {
        let others = self.waiting.get() & !who;
        self.waiting.set(if waits { others | who } else { others });
    }

    /// Sets the waker of the `poll_*` functions.
    #[inline(always)]
    pub(crate) fn wait_in_slot(&self, waker: &Waker) {
        match self.slot.take() {
            Some(current) if current.will_wake(waker) => {
                self.slot.set(Some(current));
                self.set_waiting(SLOT, true);
            }
            before => self.change_slot(before, waker),
        }
    }

    /// Puts another waker into the empty slot. It is a separate function since it is rare.
    #[inline(never)]
    fn change_slot(&self, before: Option<Waker>, waker: &Waker) {
        self.slot.set(Some(waker.clone()));
        self.set_waiting(SLOT, true);
        drop(before);
    }

    /// Takes the waker of the `poll_*` functions if it is waiting; [`put_back`](Self::put_back)
    /// puts it back.
    #[inline]
    pub(crate) fn take_slot(&self) -> Option<Waker> {
        if self.waiting.get() & SLOT != 0 {
            self.set_waiting(SLOT, false);
            self.slot.take()
        } else {
            None
        }
    }

    /// Puts a waker back that was woken, unless the slot has another one by now.
    #[inline]
    pub(crate) fn put_back(&self, waker: Waker) {
        let newer = self.slot.take();
        match newer {
            None => self.slot.set(Some(waker)),
            Some(_) => {
                self.slot.set(newer);
                drop(waker);
            }
        }
    }

    /// Adds a future, or replaces the waker of the future with this key. Returns the key.
    pub(crate) fn wait(&self, key: Option<WaitKey>, waker: &Waker) -> WaitKey {
        let new = waker.clone();
        let mut list = self.futures.get_or_init(Box::default).borrow_mut();
        let renewed = match key {
            Some(key) => list.replace(key, new).map(|before| (key, before)),
            None => Err(new),
        };
        let (key, before) = match renewed {
            Ok((key, before)) => (key, Some(before)),
            Err(new) => (list.push(new), None),
        };
        self.set_waiting(FUTURES, true);
        drop(list);
        // Dropping a waker may run user code; it happens outside the borrow.
        drop(before);
        key
    }

    /// Removes a future.
    pub(crate) fn stop_waiting(&self, key: WaitKey) {
        let Some(futures) = self.futures.get() else {
            return;
        };
        let mut list = futures.borrow_mut();
        let removed = list.remove(key);
        self.set_waiting(FUTURES, !list.is_empty());
        drop(list);
        drop(removed);
    }

    /// Returns the data pointers of the waiting wakers.
    pub(super) fn wakers(&self) -> Vec<*const ()> {
        let slot = self.slot.take();
        let in_slot = slot.as_ref().filter(|_| self.waiting.get() & SLOT != 0);
        let mut wakers: Vec<_> = in_slot.map(Waker::data).into_iter().collect();
        self.slot.set(slot);
        if let Some(futures) = self.futures.get() {
            wakers.extend(futures.borrow().iter().map(Waker::data));
        }
        wakers
    }

    /// Takes all wakers.
    pub(super) fn take_all(&self) -> Vec<Waker> {
        let futures = std::iter::from_fn(|| self.next_before(self.limit()));
        self.take_slot().into_iter().chain(futures).collect()
    }

    /// Wakes all waiters.
    pub(crate) fn wake_all(&self) {
        if let Some(waker) = self.take_slot() {
            waker.wake_by_ref();
            self.put_back(waker);
        }
        let limit = self.limit();
        while let Some(waker) = self.next_before(limit) {
            waker.wake();
        }
    }

    /// Returns the number of the next future. The futures with lower numbers are waiting already.
    #[inline]
    pub(crate) fn limit(&self) -> u64 {
        self.futures
            .get()
            .map_or(0, |futures| futures.borrow().next_number())
    }

    /// Takes the next future with a number below `limit`.
    #[inline]
    pub(crate) fn next_before(&self, limit: u64) -> Option<Waker> {
        let mut list = self.futures.get()?.borrow_mut();
        let waker = list.pop_before(limit);
        self.set_waiting(FUTURES, !list.is_empty());
        waker
    }
}
