//! A place for the waker of the one that waits.

use std::cell::Cell;
use std::task::Waker;

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
