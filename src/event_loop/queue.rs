//! Entries that run once, in the next pass of their phase: immediates, awaited phases, put-off completions.
//!
//! First in, first out. A pass takes what is there when it begins; what is added meanwhile waits for the
//! next one. An entry can be taken back at any time, also out of the running pass.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::task::Waker;

use slab::Slab;

/// What an entry does when its phase comes.
pub(crate) enum Entry {
    Wake(Waker),
    Call(Box<dyn FnOnce()>),
}

/// Names one entry; the key of one that ran or was taken back matches nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueKey {
    id: u64,
    slot: u32,
}

pub(crate) struct PhaseQueue {
    queue: RefCell<Queue>,
    /// How many entries there are, waiting and in the running pass.
    len: Cell<usize>,
}

struct Queue {
    slots: Slab<Slot>,
    waiting: VecDeque<QueueKey>,
    /// The rest of the pass that runs now, or that a panic cut short.
    running: VecDeque<QueueKey>,
    next_id: u64,
}

struct Slot {
    id: u64,
    entry: Entry,
}

impl PhaseQueue {
    pub(crate) fn new() -> Self {
        Self {
            queue: RefCell::new(Queue {
                slots: Slab::new(),
                waiting: VecDeque::new(),
                running: VecDeque::new(),
                next_id: 0,
            }),
            len: Cell::new(0),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len.get() == 0
    }

    pub(crate) fn push(&self, entry: Entry) -> QueueKey {
        let queue = &mut *self.queue.borrow_mut();
        let id = queue.next_id;
        queue.next_id += 1;
        let slot = queue.slots.insert(Slot { id, entry });
        let slot = u32::try_from(slot).expect("fewer than 2^32 entries wait at once");
        let key = QueueKey { id, slot };
        queue.waiting.push_back(key);
        self.len.set(self.len.get() + 1);
        key
    }

    /// Takes an entry back. `None`: it has run.
    pub(crate) fn remove(&self, key: QueueKey) -> Option<Entry> {
        let entry = self.queue.borrow_mut().remove(key)?;
        self.len.set(self.len.get() - 1);
        Some(entry)
    }

    /// Makes the entry wake `waker`. `false`: it has run.
    ///
    /// The waker that was there before is dropped after the borrow: its drop may be anybody's code.
    pub(crate) fn set_waker(&self, key: QueueKey, waker: &Waker) -> bool {
        let before = {
            let mut queue = self.queue.borrow_mut();
            let Some(slot) = queue.slots.get_mut(key.slot as usize) else {
                return false;
            };
            if slot.id != key.id {
                return false;
            }
            match &slot.entry {
                Entry::Wake(current) if current.will_wake(waker) => return true,
                _ => std::mem::replace(&mut slot.entry, Entry::Wake(waker.clone())),
            }
        };
        drop(before);
        true
    }

    /// A pass begins: it will run what is waiting now, after what an unfinished pass left.
    pub(crate) fn begin_pass(&self) {
        let queue = &mut *self.queue.borrow_mut();
        if queue.running.is_empty() {
            std::mem::swap(&mut queue.running, &mut queue.waiting);
        } else {
            queue.running.append(&mut queue.waiting);
        }
    }

    /// The next entry of the pass.
    pub(crate) fn next(&self) -> Option<Entry> {
        let queue = &mut *self.queue.borrow_mut();
        while let Some(key) = queue.running.pop_front() {
            if let Some(entry) = queue.remove(key) {
                self.len.set(self.len.get() - 1);
                return Some(entry);
            }
        }
        None
    }

    /// Takes everything out.
    pub(crate) fn drain(&self) -> Vec<Entry> {
        let queue = &mut *self.queue.borrow_mut();
        self.len.set(0);
        queue.waiting.clear();
        queue.running.clear();
        queue.slots.drain().map(|slot| slot.entry).collect()
    }
}

impl Queue {
    fn remove(&mut self, key: QueueKey) -> Option<Entry> {
        let slot = self.slots.get(key.slot as usize)?;
        (slot.id == key.id).then(|| self.slots.remove(key.slot as usize).entry)
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, PhaseQueue};
    use std::cell::RefCell;
    use std::rc::Rc;

    type Log = Rc<RefCell<Vec<u32>>>;

    fn entry(log: &Log, name: u32) -> Entry {
        let log = log.clone();
        Entry::Call(Box::new(move || log.borrow_mut().push(name)))
    }

    fn run(queue: &PhaseQueue) -> bool {
        match queue.next() {
            Some(Entry::Call(call)) => call(),
            Some(Entry::Wake(waker)) => waker.wake(),
            None => return false,
        }
        true
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
