//! What a [`Mutex`](super::Mutex) and a [`Semaphore`](super::Semaphore) share.

use std::cell::Cell;
use std::rc::Rc;

use super::identity::Identity;
use super::permits::{Lot, Permits};
use crate::executor::primitives::{Described, LastUse, Primitive};
use crate::site::Site;

/// The permits of a lock, apart from its value: reports reach them.
pub(super) struct Lock {
    identity: Identity,
    kind: Kind,
    permits: Permits,
    /// The number of permits, taken or free.
    total: Cell<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Mutex,
    Semaphore,
}

impl Lock {
    pub(super) fn new(kind: Kind, permits: usize, site: Site) -> Rc<Self> {
        Rc::new(Self {
            identity: Identity::new(site),
            kind,
            permits: Permits::new(permits),
            total: Cell::new(permits),
        })
    }

    /// Changes the number of permits.
    pub(super) fn set_total(&self, total: usize) {
        self.total.set(total);
    }

    pub(super) fn total(&self) -> usize {
        self.total.get()
    }
}

impl Lot for Lock {
    const NOTES_TAKER: bool = true;

    #[inline]
    fn permits(&self) -> &Permits {
        &self.permits
    }

    #[inline]
    fn identity(&self) -> &Identity {
        &self.identity
    }
}

impl Primitive for Lock {
    #[inline]
    fn describe(&self, found: &mut Vec<Described>) {
        let is_mutex = self.kind == Kind::Mutex;
        let waiters = self.permits.described(!is_mutex);
        if waiters.is_empty() {
            return;
        }
        let what = if is_mutex { "mutex" } else { "semaphore" };
        let last = self.permits.last().map(|caller| LastUse {
            verb: if is_mutex { "taken" } else { "last taken" },
            site: Some(caller.site),
            task: caller.task,
        });
        let state = match self.kind {
            Kind::Mutex => String::new(),
            Kind::Semaphore => format!("{} of {} free", self.permits.free(), self.total.get()),
        };
        found.push(Described {
            state,
            last,
            is_held: is_mutex,
            ..self.identity.described(what, waiters)
        });
    }
}

/// A permit of a lock that is borrowed; the drop releases it.
pub(super) struct Held<'a>(pub(super) &'a Lock);

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.permits.release(1);
    }
}

/// A permit of a lock; the drop releases it.
pub(super) struct HeldOwned(pub(super) Rc<Lock>);

impl Drop for HeldOwned {
    #[inline]
    fn drop(&mut self) {
        self.0.permits.release(1);
    }
}
