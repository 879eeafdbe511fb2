//! The waiters of one direction of a source: a slot for the last caller of `poll_*` functions, and
//! the futures. A future that is alone has a slot, too; several are in a list.
// Marks: as in `io/bytes.rs`: each wait of a stream passes the slot. What is `inline(never)` has
// another waker than the last time.

use std::cell::{Cell, OnceCell, RefCell};
use std::task::Waker;

use crate::event_loop::current;
use crate::raw::unwind::Steps;
use crate::wait_list::{WaitKey, WaitList};

/// The wakers of one direction. Who of them is waiting is in [`Waiters::waiting`].
#[derive(Default)]
pub(super) struct Wakers {
    /// The waker of the last caller of a `poll_*` function.
    slot: WakerSlot,
    /// The futures, boxed: a stream that is read through `poll_*` has none.
    futures: OnceCell<Box<Futures>>,
}

/// The waiters of one direction.
#[derive(Clone, Copy)]
pub(crate) struct Waiters<'a> {
    pub(super) wakers: &'a Wakers,
    /// The kinds of waiters: [`SLOT`], [`ALONE`], [`LISTED`], any of them or none. It is apart from
    /// the wakers, since a source keeps those of all directions in one word.
    pub(super) waiting: &'a Cell<u8>,
}

#[derive(Default)]
struct Futures {
    /// The waker of the future that waits longest, if no other future waited when it began.
    alone: WakerSlot,
    alone_key: Cell<Option<WaitKey>>,
    list: RefCell<WaitList>,
}

/// The waker in the slot is waiting.
const SLOT: u8 = 1;
/// The future in the slot of its own is waiting.
const ALONE: u8 = 2;
/// The futures in the list are waiting.
const LISTED: u8 = 4;

impl<'a> Waiters<'a> {
    #[inline]
    fn have_futures(&self) -> bool {
        self.is(ALONE | LISTED)
    }

    #[inline]
    fn is(&self, who: u8) -> bool {
        self.waiting.get() & who != 0
    }

    #[inline]
    fn set_waiting(&self, who: u8, waits: bool) {
        let others = self.waiting.get() & !who;
        self.waiting.set(if waits { others | who } else { others });
    }

    /// Sets the waker of the `poll_*` functions.
    #[inline(always)]
    pub(crate) fn wait_in_slot(&self, waker: &Waker) {
        if self.wakers.slot.has(waker) {
            self.waiting.set(self.waiting.get() | SLOT);
        } else {
            self.change_slot(waker);
        }
    }

    /// Puts another waker into the slot. It is a separate function since it is rare.
    #[inline(never)]
    fn change_slot(&self, waker: &Waker) {
        current::note_waker(waker);
        let new = waker.clone();
        let before = self.wakers.slot.replace(new);
        self.set_waiting(SLOT, true);
        // Dropping a waker may run user code.
        drop(before);
    }

    /// Ends the wait of the `poll_*` functions. Returns the slot of the waker that is to be woken.
    #[inline]
    pub(super) fn end_slot(&self) -> Option<&'a WakerSlot> {
        if !self.is(SLOT) {
            return None;
        }
        self.set_waiting(SLOT, false);
        Some(&self.wakers.slot)
    }

    /// Ends the wait of the only waiter, if there is one, and if its waker is in a slot, which is
    /// returned.
    #[inline(always)]
    pub(super) fn end_only(&self) -> Option<&'a WakerSlot> {
        let slot = match self.waiting.get() {
            SLOT => &self.wakers.slot,
            ALONE => &self.wakers.futures.get()?.alone,
            _ => return None,
        };
        self.waiting.set(0);
        Some(slot)
    }

    /// Adds a future, or replaces the waker of the future with this key. Returns the key.
    #[inline]
    pub(crate) fn wait(&self, key: Option<WaitKey>, waker: &Waker) -> WaitKey {
        if let Some(futures) = self.wakers.futures.get() {
            if !self.have_futures() && futures.alone.has(waker) {
                return self.wait_alone(futures);
            }
        }
        self.wait_cold(key, waker)
    }

    /// Adds a future that is not alone, or has another waker than the last one.
    #[inline(never)]
    fn wait_cold(&self, key: Option<WaitKey>, waker: &Waker) -> WaitKey {
        let futures = self.wakers.futures.get_or_init(Box::default);
        let is_alone = self.is(ALONE) && key.is_some() && futures.alone_key.get() == key;
        if let (true, Some(key)) = (is_alone, key) {
            if !futures.alone.has(waker) {
                current::note_waker(waker);
                let before = futures.alone.replace(waker.clone());
                drop(before);
            }
            return key;
        }
        self.wait_with_new_waker(futures, key, waker)
    }

    /// Begins the wait of a future whose waker is in the slot.
    #[inline]
    fn wait_alone(&self, futures: &Futures) -> WaitKey {
        let key = futures.list.borrow_mut().new_key_outside();
        futures.alone_key.set(Some(key));
        self.set_waiting(ALONE, true);
        key
    }

    fn wait_with_new_waker(
        &self,
        futures: &Futures,
        key: Option<WaitKey>,
        waker: &Waker,
    ) -> WaitKey {
        // The clone may run user code, which may begin or end a wait.
        let new = waker.clone();
        current::note_waker(waker);
        if !self.have_futures() {
            let before = futures.alone.replace(new);
            let key = self.wait_alone(futures);
            drop(before);
            return key;
        }
        let mut list = futures.list.borrow_mut();
        let renewed = match key {
            Some(key) => list.replace(key, new).map(|before| (key, before)),
            None => Err(new),
        };
        let (key, before) = match renewed {
            Ok((key, before)) => (key, Some(before)),
            Err(new) => (list.push(new), None),
        };
        self.set_waiting(LISTED, true);
        drop(list);
        // Dropping a waker may run user code; it happens outside the borrow.
        drop(before);
        key
    }

    /// Removes a future. Returns whether it was waiting: it was not if it was woken before.
    #[inline]
    pub(crate) fn stop_waiting(&self, key: WaitKey) -> bool {
        let Some(futures) = self.wakers.futures.get() else {
            return false;
        };
        if futures.alone_key.get() == Some(key) {
            let was_waiting = self.is(ALONE);
            self.set_waiting(ALONE, false);
            return was_waiting;
        }
        let mut list = futures.list.borrow_mut();
        let removed = list.remove(key);
        self.set_waiting(LISTED, !list.is_empty());
        drop(list);
        // Dropping a waker may run user code; it happens outside the borrow.
        removed.is_some()
    }

    /// Returns the data pointers of the waiting wakers.
    pub(super) fn wakers(&self) -> Vec<*const ()> {
        let mut wakers = Vec::new();
        if self.is(SLOT) {
            wakers.extend(self.wakers.slot.data());
        }
        if let Some(futures) = self.wakers.futures.get() {
            if self.is(ALONE) {
                wakers.extend(futures.alone.data());
            }
            wakers.extend(futures.list.borrow().iter().map(Waker::data));
        }
        wakers
    }

    /// Takes all wakers.
    pub(super) fn take_all(&self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        wakers.extend(self.end_slot().and_then(WakerSlot::take));
        wakers.extend(self.end_alone_before(u64::MAX).and_then(WakerSlot::take));
        while let Some(waker) = self.next_before(u64::MAX) {
            wakers.push(waker);
        }
        wakers
    }

    /// Wakes all waiters. If a waker panics, the others are woken before the panic is resumed.
    pub(crate) fn wake_all(&self) {
        let mut wakes = Steps::default();
        if let Some(slot) = self.end_slot() {
            wakes.run(|| slot.wake());
        }
        let limit = self.limit();
        if let Some(slot) = self.end_alone_before(limit) {
            wakes.run(|| slot.wake());
        }
        while let Some(waker) = self.next_before(limit) {
            wakes.run(|| waker.wake());
        }
        wakes.end();
    }

    /// Returns the number of the next future. The futures with lower numbers are waiting already.
    #[inline]
    pub(crate) fn limit(&self) -> u64 {
        self.wakers
            .futures
            .get()
            .map_or(0, |futures| futures.list.borrow().next_number())
    }

    /// Ends the wait of the future that is alone, or waits longest, if its number is below `limit`.
    /// Returns the slot of the waker that is to be woken.
    #[inline]
    pub(super) fn end_alone_before(&self, limit: u64) -> Option<&'a WakerSlot> {
        let futures = self.wakers.futures.get()?;
        let is_waiting = self.is(ALONE);
        if !is_waiting || !futures.alone_key.get()?.is_before(limit) {
            return None;
        }
        self.set_waiting(ALONE, false);
        Some(&futures.alone)
    }

    /// Takes the next future of the list with a number below `limit`.
    #[inline]
    pub(crate) fn next_before(&self, limit: u64) -> Option<Waker> {
        if !self.is(LISTED) {
            return None;
        }
        let mut list = self.wakers.futures.get()?.list.borrow_mut();
        let waker = list.pop_before(limit);
        self.set_waiting(LISTED, !list.is_empty());
        waker
    }
}

/// A place for one waker. The waker stays after it was woken: the task will probably wait again,
/// which then costs a comparison in place of a clone.
#[derive(Default)]
pub(crate) struct WakerSlot(Cell<Option<Waker>>);

impl WakerSlot {
    /// Returns whether the waker in the slot wakes the task of `waker`.
    #[inline(always)]
    pub(crate) fn has(&self, waker: &Waker) -> bool {
        let current = self.0.take();
        let is_same = current
            .as_ref()
            .is_some_and(|current| current.will_wake(waker));
        self.0.set(current);
        is_same
    }

    /// Wakes the waker. It stays in the slot, unless the wake has put another one there.
    // It is not in the slot meanwhile, since a wake may run user code, which may use the slot.
    #[inline(always)]
    pub(crate) fn wake(&self) {
        let Some(waker) = self.0.take() else {
            return;
        };
        waker.wake_by_ref();
        let newer = self.0.take();
        match newer {
            None => self.0.set(Some(waker)),
            Some(_) => {
                self.0.set(newer);
                drop(waker);
            }
        }
    }

    /// Returns the data pointer of the waker.
    pub(crate) fn data(&self) -> Option<*const ()> {
        let waker = self.0.take();
        let data = waker.as_ref().map(Waker::data);
        self.0.set(waker);
        data
    }

    /// Puts a waker in, and returns the one before, whose drop may run user code.
    #[inline]
    pub(crate) fn replace(&self, waker: Waker) -> Option<Waker> {
        self.0.replace(Some(waker))
    }

    #[inline]
    pub(crate) fn take(&self) -> Option<Waker> {
        self.0.take()
    }
}
