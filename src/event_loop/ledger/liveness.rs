//! What keeps the loop alive: a counter for each kind, and their sum.

use std::cell::Cell;

use crate::keeper::Keeper;

#[derive(Default)]
pub(super) struct Liveness {
    total: Cell<usize>,
    by_kind: [Cell<usize>; Keeper::COUNT],
}

impl Liveness {
    #[inline(always)]
    pub(crate) fn add(&self, kind: Keeper) {
        let count = &self.by_kind[kind as usize];
        count.set(count.get() + 1);
        self.total.set(self.total.get() + 1);
    }

    #[inline(always)]
    pub(crate) fn remove(&self, kind: Keeper) {
        let count = &self.by_kind[kind as usize];
        count.set(count.get() - 1);
        self.total.set(self.total.get() - 1);
    }

    /// Counts an unref'd item of a kind, which does not keep the loop alive.
    pub(crate) fn add_unref(&self, kind: Keeper) {
        let count = &self.by_kind[kind as usize];
        count.set(count.get() + 1);
    }

    pub(crate) fn remove_unref(&self, kind: Keeper) {
        let count = &self.by_kind[kind as usize];
        count.set(count.get() - 1);
    }

    /// Resets all counters when the loop is dropped.
    pub(crate) fn clear(&self) {
        self.total.set(0);
        for count in &self.by_kind {
            count.set(0);
        }
    }

    #[inline(always)]
    pub(crate) fn has_keepers(&self) -> bool {
        self.total.get() != 0
    }

    #[inline(always)]
    pub(crate) fn count(&self, kind: Keeper) -> usize {
        self.by_kind[kind as usize].get()
    }
}

#[cfg(test)]
mod tests {
    use super::{Keeper, Liveness};

    #[test]
    fn kinds_have_a_counter_each_and_a_common_sum() {
        let liveness = Liveness::default();
        for (index, kind) in Keeper::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index, "`ALL` is in the order of declaration");
            assert!(!liveness.has_keepers());
            liveness.add(kind);
            assert!(liveness.has_keepers());
            assert_eq!(liveness.count(kind), 1);
            liveness.remove(kind);
        }
        assert!(!liveness.has_keepers());
    }
}
