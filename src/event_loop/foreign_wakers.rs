//! The wakers of other libraries: which task each of them belongs to, for reports.

use std::task::Waker;

use super::core::Core;
use super::phases::timers::Payload;
use crate::sorted::SortedMap;

impl Core {
    /// Notes which task a waker belongs to, if the waker itself does not show it.
    #[inline(always)]
    pub(crate) fn note_waker(&self, waker: &Waker) {
        if !self.executor.is_of_polled_task(waker) {
            self.note_foreign_waker(waker);
        }
    }

    // Not inlined, so that the callers save no registers for it.
    #[cold]
    #[inline(never)]
    fn note_foreign_waker(&self, waker: &Waker) {
        if self.executor.note_foreign(waker) {
            self.executor.forget_foreign(&self.registered_wakers());
        }
    }

    /// Returns the data pointers of all wakers that are registered on the loop.
    #[cold]
    fn registered_wakers(&self) -> SortedMap<usize, ()> {
        let mut wakers = Vec::new();
        self.phases.each_timer(|_, payload, _| {
            if let Payload::Sleep { waker, .. } = payload {
                wakers.push(waker.data());
            }
        });
        for source in self.io.sources() {
            wakers.extend(source.waits().into_iter().flat_map(|(_, who)| who));
        }
        for header in self.ledger.headers() {
            wakers.extend(header.wakers());
        }
        wakers.extend(self.task_states().iter().filter_map(|task| task.awaiter));
        let sets = self.executor.awaited_sets();
        wakers.extend(sets.into_iter().map(|(waker, _)| waker));
        let named = self.executor.named_waits().all();
        wakers.extend(named.into_iter().map(|(_, waker)| waker));
        let wakers = wakers.into_iter();
        wakers.map(|waker| (waker.addr(), ())).collect()
    }
}
