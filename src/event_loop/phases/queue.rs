//! Entries that run once, in the next pass of their phase: immediates, awaited phases, deferred
//! completions.
//!
//! The order is first in, first out. A pass runs the entries that are queued when it begins; later
//! entries wait for the next pass. An entry can be removed at any time, also from the running pass.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::task::Waker;

use crate::event_loop::core::Core;
use crate::keeper::Keeper;
use crate::phase_order::Phase;
use crate::probe::Origin;
use crate::raw::call::Call;
use crate::site::Site;

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
        match self {
            Self::Wake(waker) => Some(waker),
            _ => None,
        }
    }

    pub(crate) fn run(self) {
        match self {
            Self::Wake(waker) => waker.wake(),
            Self::Call(call) | Self::Unref(call) => call.call(),
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
pub(crate) struct QueueKey(u64);

pub(crate) struct PhaseQueue {
    queue: RefCell<Queue>,
    /// The lines that queued entries while the loop was watched, by the entries' numbers.
    sites: RefCell<VecDeque<(u64, Site)>>,
    /// The number of entries, waiting and in the running pass.
    len: Cell<usize>,
}

/// Entries have consecutive numbers, so the place of an entry follows from its key.
struct Queue {
    /// `None` for an entry that was removed.
    entries: VecDeque<Option<Entry>>,
    /// The number of the first entry.
    first: u64,
    /// The number of the first entry that belongs to the next pass.
    pass_end: u64,
}

impl PhaseQueue {
    pub(crate) fn new() -> Self {
        Self {
            queue: RefCell::new(Queue {
                entries: VecDeque::new(),
                first: 0,
                pass_end: 0,
            }),
            sites: RefCell::default(),
            len: Cell::new(0),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len.get() == 0
    }

    /// Returns the number of entries that keep the loop alive.
    pub(in crate::event_loop) fn referenced(&self) -> usize {
        let queue = self.queue.borrow();
        let entries = queue.entries.iter().flatten();
        entries.filter(|entry| entry.is_referenced()).count()
    }

    /// Returns the data pointers of the wakers that wait for the phase.
    pub(in crate::event_loop) fn wakers(&self) -> Vec<*const ()> {
        let queue = self.queue.borrow();
        let entries = queue.entries.iter().flatten();
        let waker = |entry: &Entry| match entry {
            Entry::Wake(waker) => Some(waker.data()),
            Entry::Call(_) | Entry::Unref(_) => None,
        };
        entries.filter_map(waker).collect()
    }

    #[inline(always)]
    pub(crate) fn push(&self, entry: Entry) -> QueueKey {
        let queue = &mut *self.queue.borrow_mut();
        let key = QueueKey(queue.next());
        queue.entries.push_back(Some(entry));
        self.len.set(self.len.get() + 1);
        key
    }

    /// Removes an entry. Returns `None` if it has run.
    pub(crate) fn remove(&self, key: QueueKey) -> Option<Entry> {
        let entry = self.queue.borrow_mut().place(key)?.take()?;
        self.len.set(self.len.get() - 1);
        Some(entry)
    }

    /// Returns whether the entry keeps the loop alive, or `None` if it has run.
    pub(crate) fn is_referenced(&self, key: QueueKey) -> Option<bool> {
        let mut queue = self.queue.borrow_mut();
        queue.place(key)?.as_ref().map(Entry::is_referenced)
    }

    /// Sets whether the entry keeps the loop alive. Returns whether that was a change.
    pub(crate) fn set_referenced(&self, key: QueueKey, referenced: bool) -> bool {
        let mut queue = self.queue.borrow_mut();
        let Some(place) = queue.place(key) else {
            return false;
        };
        let before = place.as_ref().map(Entry::is_referenced);
        *place = place.take().map(|entry| entry.with_reference(referenced));
        before != place.as_ref().map(Entry::is_referenced)
    }

    /// Sets the waker of an entry. Returns `false` if it has run.
    pub(crate) fn set_waker(&self, key: QueueKey, waker: &Waker) -> bool {
        match self.queue.borrow_mut().place(key) {
            Some(Some(Entry::Wake(current))) if current.will_wake(waker) => return true,
            Some(Some(_)) => {}
            Some(None) | None => return false,
        }
        // Cloning or dropping a waker may run user code; both happen outside the borrow.
        let mut entry = Entry::Wake(waker.clone());
        let mut queue = self.queue.borrow_mut();
        let Some(Some(place)) = queue.place(key) else {
            return false;
        };
        std::mem::swap(place, &mut entry);
        drop(queue);
        drop(entry);
        true
    }

    /// Begins a pass over the rest of an interrupted pass and the entries that wait now.
    pub(crate) fn begin_pass(&self) {
        let queue = &mut *self.queue.borrow_mut();
        queue.pass_end = queue.next();
    }

    /// Returns the next entry of the pass.
    pub(crate) fn next(&self) -> Option<Entry> {
        let queue = &mut *self.queue.borrow_mut();
        while queue.first < queue.pass_end {
            queue.first += 1;
            if let Some(Some(entry)) = queue.entries.pop_front() {
                self.len.set(self.len.get() - 1);
                return Some(entry);
            }
        }
        None
    }

    /// Notes the line that queued an entry, if known.
    #[cold]
    #[inline(never)]
    pub(crate) fn note_site(&self, key: QueueKey, site: Option<Site>) {
        let site = site.map(|site| (key.0, site));
        self.sites.borrow_mut().extend(site);
    }

    /// Returns where the entry comes from that was taken last.
    pub(crate) fn origin(&self) -> Origin {
        let number = self.queue.borrow().first - 1;
        let mut sites = self.sites.borrow_mut();
        // Entries that were removed have left theirs behind.
        while sites.front().is_some_and(|&(earlier, _)| earlier < number) {
            sites.pop_front();
        }
        let is_known = sites.front().is_some_and(|&(noted, _)| noted == number);
        let site = is_known.then(|| sites.pop_front()).flatten();
        Origin::new(Keeper::Queued, site.map(|(_, site)| site))
    }

    /// Returns whether the pass has no entry left.
    pub(crate) fn is_pass_over(&self) -> bool {
        let queue = self.queue.borrow();
        let left = queue.pass_end.saturating_sub(queue.first) as usize;
        queue.entries.iter().take(left).all(Option::is_none)
    }

    /// Removes all entries.
    pub(crate) fn drain(&self) -> Vec<Entry> {
        self.begin_pass();
        let mut entries = Vec::new();
        while let Some(entry) = self.next() {
            entries.push(entry);
        }
        entries
    }
}

impl Queue {
    /// Returns the number of the next entry.
    fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    fn place(&mut self, key: QueueKey) -> Option<&mut Option<Entry>> {
        let index = key.0.checked_sub(self.first)?;
        self.entries.get_mut(usize::try_from(index).ok()?)
    }
}

impl Core {
    #[inline(always)]
    pub(in crate::event_loop) fn run_queue(&self, phase: Phase) {
        let queue = self.phases.queue(phase);
        if !queue.is_empty() {
            self.run_queue_pass(phase, queue);
        }
    }

    #[inline(never)]
    fn run_queue_pass(&self, phase: Phase, queue: &PhaseQueue) {
        self.clock().catch_up();
        if self.is_contained() {
            return self.run_queue_contained(phase, queue);
        }
        queue.begin_pass();
        while let Some(entry) = queue.next() {
            self.uncount_entry(&entry);
            self.dispatch_entry(phase, queue, entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Call, Entry, PhaseQueue};
    use std::cell::RefCell;
    use std::rc::Rc;

    type Log = Rc<RefCell<Vec<u32>>>;

    fn entry(log: &Log, name: u32) -> Entry {
        let log = log.clone();
        Entry::Call(Call::new(move || log.borrow_mut().push(name)))
    }

    fn run(queue: &PhaseQueue) -> bool {
        queue.next().map(Entry::run).is_some()
    }

    #[test]
    fn a_pass_runs_what_was_there_when_it_began() {
        let (queue, log) = (PhaseQueue::new(), Log::default());
        queue.push(entry(&log, 1));
        queue.push(entry(&log, 2));
        queue.begin_pass();
        assert!(run(&queue));
        queue.push(entry(&log, 3));
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
        let (queue, log) = (PhaseQueue::new(), Log::default());
        queue.push(entry(&log, 1));
        let second = queue.push(entry(&log, 2));
        queue.begin_pass();
        assert!(run(&queue));
        assert!(
            queue.remove(second).is_some(),
            "also out of the running pass"
        );
        let reused = queue.push(entry(&log, 3));
        assert!(queue.remove(second).is_none());
        assert!(!run(&queue));
        queue.begin_pass();
        while run(&queue) {}
        assert_eq!(*log.borrow(), [1, 3]);
        assert!(queue.remove(reused).is_none());
    }

    #[test]
    fn what_an_unfinished_pass_left_comes_first() {
        let (queue, log) = (PhaseQueue::new(), Log::default());
        queue.push(entry(&log, 1));
        queue.push(entry(&log, 2));
        queue.begin_pass();
        assert!(run(&queue));
        queue.push(entry(&log, 3));
        queue.begin_pass();
        while run(&queue) {}
        assert_eq!(*log.borrow(), [1, 2, 3]);
    }
}
