//! The one that waits at a side of a channel that has one owner.
// Marks: the wake of a receiver is each send (row `mpsc_ping_pong`); another waker is rare.

use std::cell::Cell;
use std::rc::Rc;
use std::task::Waker;

use super::identity::Identity;
use crate::event_loop::io::waiters::WakerSlot;
use crate::executor::primitives::{DescribedWaiter, Primitive, TaskKey};
use crate::site::Site;

pub(super) struct OneWaiter {
    slot: WakerSlot,
    is_waiting: Cell<bool>,
    /// The line that waits, if known, and what is polled.
    site: Cell<Option<Site>>,
    task: Cell<TaskKey>,
}

impl Default for OneWaiter {
    fn default() -> Self {
        Self {
            slot: WakerSlot::default(),
            is_waiting: Cell::new(false),
            site: Cell::new(None),
            task: Cell::new(TaskKey::NONE),
        }
    }
}

impl OneWaiter {
    /// Returns whether the slot has this waker, so that [`wait_again`](Self::wait_again) is enough.
    #[inline]
    pub(super) fn has(&self, waker: &Waker) -> bool {
        self.slot.has(waker)
    }

    /// Waits with the waker in the slot.
    #[inline]
    pub(super) fn wait_again<P: Primitive + 'static>(
        &self,
        site: Option<Site>,
        identity: &Identity,
        primitive: &Rc<P>,
    ) {
        self.is_waiting.set(true);
        self.site.set(site);
        self.task.set(identity.begin_wait(primitive));
    }

    /// Puts another waker into the slot. It runs user code, and does not begin a wait.
    #[inline(never)]
    pub(super) fn set_waker(&self, waker: &Waker) {
        let before = self.slot.replace(waker.clone());
        drop(before);
    }

    /// Ends the wait of one that has gone.
    #[inline]
    pub(super) fn stop(&self) {
        self.is_waiting.set(false);
    }

    /// Wakes the one that waits. The waker stays in the slot: it will probably wait again.
    ///
    /// # Panics
    ///
    /// If the waker panics.
    #[inline(always)]
    pub(super) fn wake(&self) {
        if self.is_waiting.replace(false) {
            self.slot.wake();
        }
    }

    /// Takes the waker out, whose drop may run user code: no wait follows.
    pub(super) fn clear(&self) -> Option<Waker> {
        self.is_waiting.set(false);
        self.slot.take()
    }

    /// Returns the one that waits, for a report.
    #[inline]
    pub(super) fn described(&self) -> Option<DescribedWaiter> {
        let waker = self.slot.data().filter(|_| self.is_waiting.get())?;
        Some(DescribedWaiter {
            site: self.site.get(),
            task: self.task.get(),
            waker,
            wants: None,
        })
    }
}
