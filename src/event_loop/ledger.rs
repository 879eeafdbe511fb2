//! What keeps the loop alive: a counter for each kind of keeper, the open handles (`handles.rs`),
//! and the jobs that other threads run for the loop (`jobs.rs`).

pub(crate) mod handles;
pub(crate) mod jobs;

use std::cell::Cell;

use self::handles::{Handles, Header, Stage};
use self::jobs::Jobs;
use super::core::Core;
use crate::keeper::Keeper;
use crate::raw::unwind::Steps;

pub(crate) struct Ledger {
    /// The number of keepers of each kind.
    keepers: [Cell<usize>; Keeper::COUNT],
    /// The number of those that keep the loop alive.
    total: Cell<usize>,
    handles: Handles,
    jobs: Jobs,
}

impl Ledger {
    pub(super) fn new() -> Self {
        Self {
            keepers: Default::default(),
            total: Cell::new(0),
            handles: Handles::new(),
            jobs: Jobs::default(),
        }
    }

    /// Counts one more keeper of a kind.
    #[inline]
    pub(crate) fn add(&self, kind: Keeper) {
        let count = &self.keepers[kind as usize];
        count.set(count.get() + 1);
        self.total.set(self.total.get() + 1);
    }

    /// Counts one keeper of a kind less.
    #[inline]
    pub(crate) fn remove(&self, kind: Keeper) {
        let count = &self.keepers[kind as usize];
        count.set(count.get() - 1);
        self.total.set(self.total.get() - 1);
    }

    /// Counts one keeper of a kind more, or less.
    pub(super) fn change(&self, kind: Keeper, up: bool) {
        let by = if up { 1 } else { -1 };
        for count in [&self.keepers[kind as usize], &self.total] {
            count.set(count.get().wrapping_add_signed(by));
        }
    }

    /// Counts an unref'd item of a kind, which does not keep the loop alive.
    #[inline]
    pub(super) fn add_unref(&self, kind: Keeper) {
        let count = &self.keepers[kind as usize];
        count.set(count.get() + 1);
    }

    #[inline]
    pub(super) fn remove_unref(&self, kind: Keeper) {
        let count = &self.keepers[kind as usize];
        count.set(count.get() - 1);
    }

    #[inline]
    pub(super) fn has_keepers(&self) -> bool {
        self.total.get() != 0
    }

    #[inline]
    pub(crate) fn count(&self, kind: Keeper) -> usize {
        self.keepers[kind as usize].get()
    }

    /// Forgets all keepers and jobs when the loop is dropped.
    pub(super) fn clear(&self, steps: &mut Steps) {
        self.total.set(0);
        for count in &self.keepers {
            count.set(0);
        }
        self.clear_jobs(steps);
    }
}

/// Liveness.
impl Core {
    /// Returns whether the loop is alive: something referenced is active or queued, a lane is not
    /// empty, another thread has sent a message, or a panic has interrupted a phase. A send to
    /// an async handle is not a message: the handle itself counts while it is open and referenced.
    // Rule R1.
    #[inline]
    pub(crate) fn is_alive(&self) -> bool {
        self.ledger.has_keepers() || self.has_unlisted() || self.waits.keepers(&self.executor) > 0
    }

    /// Returns the number of keepers of a kind.
    pub(crate) fn count_keepers(&self, kind: Keeper) -> usize {
        match kind {
            Keeper::Runtime => self.waits.keepers(&self.executor),
            _ => self.ledger.count(kind),
        }
    }

    /// Returns whether the loop is alive for a reason that no [`Keeper`](crate::Keeper) counts.
    pub(crate) fn has_unlisted(&self) -> bool {
        !self.executor.lanes.is_empty() || self.io.has_messages() || self.was_interrupted.get()
    }
}

/// The handles.
impl Core {
    pub(crate) fn set_active(&self, header: &Header, active: bool) {
        if header.active.replace(active) != active {
            if header.referenced.get() {
                self.ledger.change(header.kind, active);
            }
            // A host sleeps until a time that was right before.
            self.notify_host();
        }
    }

    pub(crate) fn set_referenced(&self, header: &Header, referenced: bool) {
        if header.referenced.replace(referenced) != referenced && header.active.get() {
            self.ledger.change(header.kind, referenced);
            self.notify_host();
        }
    }

    /// Releases a dropped handle. It leaves the registry at once, unless it waits for the closing
    /// phase.
    pub(crate) fn release(&self, header: &Header) {
        self.set_active(header, false);
        if header.stage.get() == Stage::Open {
            self.ledger.close(header);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Keeper, Ledger};

    #[test]
    fn kinds_have_a_counter_each_and_a_common_sum() {
        let ledger = Ledger::new();
        for (index, kind) in Keeper::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index, "`ALL` is in the order of declaration");
            assert!(!ledger.has_keepers());
            ledger.add(kind);
            assert!(ledger.has_keepers());
            assert_eq!(ledger.count(kind), 1);
            ledger.remove(kind);
        }
        assert!(!ledger.has_keepers());
    }
}
