//! Entries that run once, in the next pass of their phase: immediates, awaited phases, deferred
//! completions.
//!
//! The order is first in, first out. A pass runs the entries that are queued when it begins; later
//! entries wait for the next pass. An entry can be removed at any time, also from the running pass.
// Marks: an entry is written to its place, not copied on the way (row `immediates/1000`); the pass
// is not inlined in the turn.

use std::cell::{Cell, OnceCell};
use std::task::Waker;

use crate::event_loop::core::Core;
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::probe::{Mode, Origin};
use crate::raw::call::Call;
use crate::raw::ring::Ring;
use crate::site::Site;

/// A queue with room for more entries than this releases its memory once it is empty, so that a
/// burst does not keep it for ever.
const LARGE: usize = 1 << 16;

/// An entry, and what it does in its phase.
pub(crate) enum Entry {
    Wake(Waker),
    Call(Call),
    /// Calls a closure; does not keep the loop alive.
    Unref(Call),
}

impl Entry {
    /// Returns the waker of a `Wake` entry; a closure is dropped.
    pub(in crate::event_loop) fn into_waker(self) -> Option<Waker> {
        self.into_call().err()
    }

    /// Returns the closure, or the waker of a `Wake` entry.
    // A caller that takes the entry apart itself would track, while the closure runs, which of the
    // variants is to be dropped.
    #[inline]
    pub(in crate::event_loop) fn into_call(self) -> Result<Call, Waker> {
        match self {
            Self::Wake(waker) => Err(waker),
            Self::Call(call) | Self::Unref(call) => Ok(call),
        }
    }

    // Inlined, so that the entry is not copied on the way.
    #[inline(always)]
    pub(crate) fn run(self) {
        match self.into_call() {
            Ok(call) => call.call(),
            Err(waker) => waker.wake(),
        }
    }

    /// Returns whether the entry keeps the loop alive.
    pub(crate) fn is_referenced(&self) -> bool {
        !matches!(self, Self::Unref(_))
    }

    fn with_reference(self, referenced: bool) -> Self {
        match self {
            Self::Call(call) | Self::Unref(call) if referenced => Self::Call(call),
            Self::Call(call) | Self::Unref(call) => Self::Unref(call),
            Self::Wake(waker) => Self::Wake(waker),
        }
    }
}

/// The number of an entry. The key of an entry that ran or was removed matches no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueKey(usize);

/// An entry, and the line that queued it, if known.
type Queued = (Entry, Option<Site>);

#[derive(Default)]
pub(crate) struct PhaseQueue {
    /// The entries by their numbers. `None` for an entry that was removed. It is created with the
    /// first entry, since most phases of most loops have none.
    entries: OnceCell<Ring<Option<Queued>>>,
    /// The number of the first entry that belongs to the next pass.
    pass_end: Cell<usize>,
    /// The number of entries, waiting and in the running pass.
    pub(super) len: Cell<usize>,
}

impl PhaseQueue {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len.get() == 0
    }

    /// Returns the number of entries that keep the loop alive.
    pub(crate) fn referenced(&self) -> usize {
        let mut referenced = 0;
        self.each(|entry| referenced += usize::from(entry.is_referenced()));
        referenced
    }

    /// Returns the data pointers of the wakers that wait for the phase.
    #[inline]
    pub(crate) fn wakers(&self) -> Vec<*const ()> {
        let mut wakers = Vec::new();
        self.each(|entry| {
            if let Entry::Wake(waker) = entry {
                wakers.push(waker.data());
            }
        });
        wakers
    }

    #[inline(always)]
    pub(crate) fn push(&self, entry: Entry, site: Option<Site>) -> QueueKey {
        let entries = self.entries.get_or_init(Ring::new);
        let key = QueueKey(entries.next());
        entries.push(Some((entry, site)));
        self.len.set(self.len.get() + 1);
        key
    }

    /// Removes an entry. Returns `None` if it has run.
    pub(crate) fn remove(&self, key: QueueKey) -> Option<Entry> {
        let (entry, _) = self.take_out(key)?;
        let left = self.len.get() - 1;
        self.len.set(left);
        if left == 0 {
            self.free_places();
        }
        Some(entry)
    }

    /// Frees the places of removed entries if no other entry is left: a phase without entries has
    /// no pass, so they would stay.
    fn free_places(&self) {
        if let Some(entries) = self.entries.get() {
            while entries.pop().is_some() {}
            self.pass_end.set(entries.next());
            entries.shrink(LARGE);
        }
    }

    /// Returns whether the entry keeps the loop alive, or `None` if it has run.
    pub(crate) fn is_referenced(&self, key: QueueKey) -> Option<bool> {
        let (entry, site) = self.take_out(key)?;
        let referenced = entry.is_referenced();
        self.put_back(key, entry, site);
        Some(referenced)
    }

    /// Sets whether the entry keeps the loop alive. Returns whether that was a change.
    pub(crate) fn set_referenced(&self, key: QueueKey, referenced: bool) -> bool {
        let Some((entry, site)) = self.take_out(key) else {
            return false;
        };
        let before = entry.is_referenced();
        let entry = entry.with_reference(referenced);
        let is_change = before != entry.is_referenced();
        self.put_back(key, entry, site);
        is_change
    }

    /// Sets the waker of an entry. Returns `false` if it has run.
    pub(crate) fn set_waker(&self, key: QueueKey, waker: &Waker) -> bool {
        let Some((entry, site)) = self.take_out(key) else {
            return false;
        };
        let is_set = matches!(&entry, Entry::Wake(known) if known.will_wake(waker));
        self.put_back(key, entry, site);
        if is_set {
            return true;
        }
        // Cloning or dropping a waker may run user code, which may remove the entry.
        let waker = waker.clone();
        let Some(before) = self.take_out(key) else {
            return false;
        };
        self.put_back(key, Entry::Wake(waker), site);
        drop(before);
        true
    }

    /// Takes an entry out of its place, which stays.
    // A ring lends no references: user code could push, and so move the entries, meanwhile.
    fn take_out(&self, key: QueueKey) -> Option<Queued> {
        self.entries.get()?.replace(key.0, None)?
    }

    /// Puts an entry into the place that it was taken out of.
    fn put_back(&self, key: QueueKey, entry: Entry, site: Option<Site>) {
        let place = self.entries.get();
        let before = place.and_then(|entries| entries.replace(key.0, Some((entry, site))));
        debug_assert!(matches!(before, Some(None)), "its place is there and empty");
    }

    /// Returns whether an entry has neither run nor been removed.
    fn holds(&self, key: QueueKey) -> bool {
        self.is_referenced(key).is_some()
    }

    /// Calls `f` with each entry, in order. `f` runs no user code.
    fn each(&self, mut f: impl FnMut(&Entry)) {
        let numbers = self.entries.get().map(|all| (all.first(), all.len()));
        let (first, len) = numbers.unwrap_or_default();
        for number in 0..len {
            let key = QueueKey(first.wrapping_add(number));
            if let Some((entry, site)) = self.take_out(key) {
                f(&entry);
                self.put_back(key, entry, site);
            }
        }
    }

    /// Begins a pass over the rest of an interrupted pass and the entries that wait now.
    #[inline]
    pub(crate) fn begin_pass(&self) {
        if let Some(entries) = self.entries.get() {
            self.pass_end.set(entries.next());
        }
    }

    /// Returns the next entry of the pass, and the line that queued it, if known.
    #[inline]
    pub(crate) fn next(&self) -> Option<Queued> {
        self.next_of(self.entries.get()?)
    }

    #[inline(always)]
    fn next_of(&self, entries: &Ring<Option<Queued>>) -> Option<Queued> {
        while entries.first() != self.pass_end.get() {
            if let Some(entry) = entries.pop()? {
                self.len.set(self.len.get() - 1);
                return Some(entry);
            }
        }
        entries.shrink(LARGE);
        None
    }

    /// Returns whether the pass has no entry left.
    pub(crate) fn is_pass_over(&self) -> bool {
        let first = self.entries.get().map_or(0, Ring::first);
        let left = self.pass_end.get().wrapping_sub(first);
        let mut numbers = 0..left;
        !numbers.any(|number| self.holds(QueueKey(first.wrapping_add(number))))
    }

    /// Removes all entries.
    pub(crate) fn drain(&self) -> Vec<Entry> {
        self.begin_pass();
        std::iter::from_fn(|| self.next().map(|(entry, _)| entry)).collect()
    }
}

impl Core {
    #[inline]
    pub(in crate::event_loop) fn run_queue(&self, phase: Phase) {
        let queue = self.phases.queue(phase);
        if !queue.is_empty() {
            self.run_queue_pass(phase, queue);
        }
    }

    #[inline(never)]
    fn run_queue_pass(&self, phase: Phase, queue: &PhaseQueue) {
        self.executor.clock.catch_up();
        if self.executor.probe.has(Mode::CONTAINED) {
            return self.run_queue_contained(phase, queue);
        }
        queue.begin_pass();
        let Some(entries) = queue.entries.get() else {
            return;
        };
        while let Some((entry, site)) = queue.next_of(entries) {
            self.uncount_entry(&entry);
            let origin = || Origin::new(Keeper::Queued, site);
            self.dispatch(phase, origin, || entry.run());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Call, Entry, LARGE, PhaseQueue};
    use std::cell::RefCell;
    use std::rc::Rc;

    type Log = Rc<RefCell<Vec<u32>>>;

    fn entry(log: &Log, name: u32) -> Entry {
        let log = log.clone();
        Entry::Call(Call::new(move || log.borrow_mut().push(name)))
    }

    fn run(queue: &PhaseQueue) -> bool {
        queue.next().map(|(entry, _)| entry.run()).is_some()
    }

    #[test]
    fn a_pass_runs_what_was_there_when_it_began() {
        let (queue, log) = (PhaseQueue::default(), Log::default());
        queue.push(entry(&log, 1), None);
        queue.push(entry(&log, 2), None);
        queue.begin_pass();
        assert!(run(&queue));
        queue.push(entry(&log, 3), None);
        while run(&queue) {}
        assert_eq!(*log.borrow(), [1, 2]);
        assert!(!queue.is_empty());
        queue.begin_pass();
        while run(&queue) {}
        assert_eq!(*log.borrow(), [1, 2, 3]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_removed_entry_does_not_run_and_its_key_dies_with_it() {
        let (queue, log) = (PhaseQueue::default(), Log::default());
        queue.push(entry(&log, 1), None);
        let second = queue.push(entry(&log, 2), None);
        queue.begin_pass();
        assert!(run(&queue));
        assert!(
            queue.remove(second).is_some(),
            "also out of the running pass"
        );
        let reused = queue.push(entry(&log, 3), None);
        assert!(queue.remove(second).is_none());
        assert!(!run(&queue));
        queue.begin_pass();
        while run(&queue) {}
        assert_eq!(*log.borrow(), [1, 3]);
        assert!(queue.remove(reused).is_none());
    }

    #[test]
    fn removed_entries_leave_nothing_behind_although_no_pass_follows() {
        let (queue, log) = (PhaseQueue::default(), Log::default());
        let places = || queue.entries.get().unwrap().len();
        for _ in 0..3 {
            let [one, two] = [1, 2].map(|name| queue.push(entry(&log, name), None));
            queue.remove(one);
            queue.remove(two);
            assert_eq!(places(), 0);
        }
        // In a pass, what is queued afterwards still waits for the next one.
        queue.push(entry(&log, 1), None);
        let second = queue.push(entry(&log, 2), None);
        queue.begin_pass();
        assert!(run(&queue));
        queue.remove(second);
        queue.push(entry(&log, 3), None);
        assert!(queue.is_pass_over() && !run(&queue));
        queue.begin_pass();
        assert!(run(&queue) && !run(&queue));
        assert_eq!((places(), &*log.borrow()), (0, &vec![1, 3]));
    }

    #[test]
    fn a_queue_without_entries_does_not_keep_the_memory_of_a_burst() {
        let (queue, log) = (PhaseQueue::default(), Log::default());
        let room = || queue.entries.get().unwrap().capacity();
        let small = PhaseQueue::default();
        small.push(entry(&log, 0), None);
        let small = small.entries.get().unwrap().capacity();
        let burst = || (0..=LARGE).map(|_| queue.push(entry(&log, 1), None));

        burst().for_each(drop);
        queue.begin_pass();
        let late = queue.push(entry(&log, 2), None);
        while run(&queue) {}
        assert!(
            room() > LARGE,
            "the entry of the next pass stays where it is"
        );
        queue.begin_pass();
        while run(&queue) {}
        assert_eq!(room(), small, "after a pass");
        assert!(queue.remove(late).is_none());
        assert_eq!(log.take().len(), LARGE + 2);

        let keys: Vec<_> = burst().collect();
        for key in keys {
            assert!(queue.remove(key).is_some());
        }
        assert_eq!(room(), small, "after every entry was removed");

        // Its entries keep their order and their keys.
        queue.push(entry(&log, 3), None);
        let fourth = queue.push(entry(&log, 4), None);
        queue.push(entry(&log, 5), None);
        assert!(queue.remove(fourth).is_some());
        queue.begin_pass();
        while run(&queue) {}
        assert_eq!(*log.borrow(), [3, 5]);
    }

    #[test]
    fn what_an_unfinished_pass_left_comes_first() {
        let (queue, log) = (PhaseQueue::default(), Log::default());
        queue.push(entry(&log, 1), None);
        queue.push(entry(&log, 2), None);
        queue.begin_pass();
        assert!(run(&queue));
        queue.push(entry(&log, 3), None);
        queue.begin_pass();
        while run(&queue) {}
        assert_eq!(*log.borrow(), [1, 2, 3]);
    }
}
