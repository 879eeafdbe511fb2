//! Entries that run once, in the next pass of their phase: immediates, awaited phases, put-off completions.
//!
//! First in, first out. A pass takes what is there when it begins; what is added meanwhile waits for the
//! next one. An entry can be taken back at any time, also out of the running pass.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::task::Waker;

use crate::sys::call::Call;

/// What an entry does when its phase comes.
pub(crate) enum Entry {
    Wake(Waker),
    Call(Call),
    /// The same, and it does not keep the loop alive.
    Unref(Call),
}

impl Entry {
    /// The waker, if it is one; a closure is dropped.
    pub(super) fn into_waker(self) -> Option<Waker> {
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

    /// Whether it keeps the loop alive.
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

/// Names one entry: its number. The key of one that ran or was taken back matches nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueKey(u64);

pub(crate) struct PhaseQueue {
    queue: RefCell<Queue>,
    /// How many entries there are, waiting and in the running pass.
    len: Cell<usize>,
}

/// Entries have consecutive numbers, so a key says where its entry stands.
struct Queue {
    /// `None` for one that was taken back.
    entries: VecDeque<Option<Entry>>,
    /// The number of the first entry.
    first: u64,
    /// The number of the first entry that the running pass leaves to the next one.
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
            len: Cell::new(0),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len.get() == 0
    }

    /// How many entries keep the loop alive.
    pub(super) fn referenced(&self) -> usize {
        let queue = self.queue.borrow();
        let entries = queue.entries.iter().flatten();
        entries.filter(|entry| entry.is_referenced()).count()
    }

    /// What the wakers point to that wait for the phase.
    pub(super) fn wakers(&self) -> Vec<*const ()> {
        let queue = self.queue.borrow();
        let entries = queue.entries.iter().flatten();
        let waker = |entry: &Entry| match entry {
            Entry::Wake(waker) => Some(waker.data()),
            Entry::Call(_) | Entry::Unref(_) => None,
        };
        entries.filter_map(waker).collect()
    }

    #[inline]
    pub(crate) fn push(&self, entry: Entry) -> QueueKey {
        let queue = &mut *self.queue.borrow_mut();
        let key = QueueKey(queue.next());
        queue.entries.push_back(Some(entry));
        self.len.set(self.len.get() + 1);
        key
    }

    /// Takes an entry back. `None`: it has run.
    pub(crate) fn remove(&self, key: QueueKey) -> Option<Entry> {
        let entry = self.queue.borrow_mut().place(key)?.take()?;
        self.len.set(self.len.get() - 1);
        Some(entry)
    }

    /// Whether the entry keeps the loop alive. `None`: it has run.
    pub(crate) fn is_referenced(&self, key: QueueKey) -> Option<bool> {
        let mut queue = self.queue.borrow_mut();
        queue.place(key)?.as_ref().map(Entry::is_referenced)
    }

    /// Changes whether the entry keeps the loop alive. `true`: it did the opposite until now.
    pub(crate) fn set_referenced(&self, key: QueueKey, referenced: bool) -> bool {
        let mut queue = self.queue.borrow_mut();
        let Some(place) = queue.place(key) else {
            return false;
        };
        let before = place.as_ref().map(Entry::is_referenced);
        *place = place.take().map(|entry| entry.with_reference(referenced));
        before != place.as_ref().map(Entry::is_referenced)
    }

    /// Makes the entry wake `waker`. `false`: it has run.
    pub(crate) fn set_waker(&self, key: QueueKey, waker: &Waker) -> bool {
        match self.queue.borrow_mut().place(key) {
            Some(Some(Entry::Wake(current))) if current.will_wake(waker) => return true,
            Some(Some(_)) => {}
            Some(None) | None => return false,
        }
        // The clone and the drop of a waker may be anybody's code, and are outside the borrow.
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

    /// A pass begins: it will run what is waiting now, and before that what an unfinished pass has left.
    pub(crate) fn begin_pass(&self) {
        let queue = &mut *self.queue.borrow_mut();
        queue.pass_end = queue.next();
    }

    /// The next entry of the pass.
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

    /// Whether nothing is left of the pass.
    pub(crate) fn is_pass_over(&self) -> bool {
        let queue = self.queue.borrow();
        let left = queue.pass_end.saturating_sub(queue.first) as usize;
        queue.entries.iter().take(left).all(Option::is_none)
    }

    /// Takes everything out.
    pub(crate) fn drain(&self) -> Vec<Entry> {
        let queue = &mut *self.queue.borrow_mut();
        self.len.set(0);
        queue.first = queue.next();
        queue.entries.drain(..).flatten().collect()
    }
}

impl Queue {
    /// The number the next entry gets.
    fn next(&self) -> u64 {
        self.first + self.entries.len() as u64
    }

    fn place(&mut self, key: QueueKey) -> Option<&mut Option<Entry>> {
        let index = key.0.checked_sub(self.first)?;
        self.entries.get_mut(usize::try_from(index).ok()?)
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
