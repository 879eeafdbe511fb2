//! The sources of I/O: what is ready in each direction, and who waits for it.
//!
//! Sources are registered once, edge-triggered. An event sets a direction ready; it stays so until the owner
//! finds out by trying that it is not any more. So a busy socket costs no system call but its own reads and
//! writes. A key holds a slot and a generation: an event of a source that is gone, still in the batch when its
//! slot or its descriptor has a new tenant, finds nobody (R94).

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;

use slab::Slab;

use super::core::Core;
use super::handles::Header;
use crate::kinds::Kind;
use crate::sys::poller::{MAX_KEY, Ready};

/// Half of the key is the slot, the other half the generation.
const SLOT_BITS: u32 = usize::BITS / 2;
const SLOT_MASK: usize = (1 << SLOT_BITS) - 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

/// What a source and the loop share.
pub(crate) struct SourceState {
    pub(crate) header: Rc<Header>,
    pub(crate) key: usize,
    read: Side,
    write: Side,
    /// Whether who waits to write keeps the loop alive although the handle is unref'd, as libuv's write requests do (R156).
    pub(crate) writes_are_requests: Cell<bool>,
    /// Whether such a wait is counted.
    request_counted: Cell<bool>,
}

impl SourceState {
    pub(crate) fn side(&self, direction: Direction) -> &Side {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        }
    }

    /// Brings the loop's books in line with who waits.
    pub(crate) fn count_waits(&self, core: &Core) {
        let (read, write) = (self.read.is_awaited(), self.write.is_awaited());
        let request = write && self.writes_are_requests.get();
        core.set_active(&self.header, read || write && !request);
        if self.request_counted.replace(request) != request {
            core.count(Kind::Io, request);
        }
    }

    /// The source is gone: nobody waits for it any more.
    pub(crate) fn end_waits(&self, core: &Core) {
        core.set_active(&self.header, false);
        if self.request_counted.replace(false) {
            core.count(Kind::Io, false);
        }
    }
}

/// One direction of a source.
#[derive(Default)]
pub(crate) struct Side {
    /// Stays set until an attempt finds the direction not ready.
    ready: Cell<bool>,
    /// The end or an error has come: there will be no further event, and every attempt is worth while.
    for_good: Cell<bool>,
    waiters: RefCell<Waiters>,
}

#[derive(Default)]
struct Waiters {
    /// The one place of the `poll_*` functions: the last caller has it.
    slot: Option<Waker>,
    /// The futures, oldest first. Hardly ever more than one.
    futures: Vec<(u64, Waker)>,
    next_id: u64,
}

impl Side {
    pub(crate) fn is_ready(&self) -> bool {
        self.ready.get()
    }

    /// An event has come.
    pub(crate) fn set_ready(&self, ready: Ready) {
        self.ready.set(true);
        if ready.for_good {
            self.for_good.set(true);
        }
    }

    /// An attempt would have blocked.
    pub(crate) fn clear(&self) {
        self.ready.set(false);
        self.for_good.set(false);
    }

    /// An attempt got less than it asked for: nothing is left until the next event, where events tell of the end too.
    #[cfg(any(unix, feature = "net"))]
    pub(crate) fn clear_after_partial(&self) {
        if crate::sys::poller::REPORTS_END && !self.for_good.get() {
            self.ready.set(false);
        }
    }

    pub(crate) fn is_awaited(&self) -> bool {
        let waiters = self.waiters.borrow();
        waiters.slot.is_some() || !waiters.futures.is_empty()
    }

    /// Makes `waker` the one to be woken for the `poll_*` functions.
    pub(crate) fn wait_in_slot(&self, waker: &Waker) {
        let before = {
            let mut waiters = self.waiters.borrow_mut();
            match &waiters.slot {
                Some(current) if current.will_wake(waker) => None,
                _ => waiters.slot.replace(waker.clone()),
            }
        };
        // Outside the borrow: the drop of a waker may be anybody's code.
        drop(before);
    }

    /// Adds a future, or renews the waker of the one with this number. Returns the number.
    pub(crate) fn wait(&self, id: Option<u64>, waker: &Waker) -> u64 {
        let mut before = None;
        let mut waiters = self.waiters.borrow_mut();
        let known = waiters
            .futures
            .iter_mut()
            .find(|(known, _)| Some(*known) == id);
        let id = match known {
            Some((id, current)) => {
                if !current.will_wake(waker) {
                    before = Some(std::mem::replace(current, waker.clone()));
                }
                *id
            }
            None => {
                let id = waiters.next_id;
                waiters.next_id += 1;
                waiters.futures.push((id, waker.clone()));
                id
            }
        };
        drop(waiters);
        drop(before);
        id
    }

    /// Takes a future back.
    pub(crate) fn stop_waiting(&self, id: u64) {
        let mut waiters = self.waiters.borrow_mut();
        let place = waiters.futures.iter().position(|(known, _)| *known == id);
        let removed = place.map(|place| waiters.futures.remove(place));
        drop(waiters);
        drop(removed);
    }

    /// Takes the next waiter that was there before number `limit` was given out.
    pub(crate) fn next_waiter(&self, limit: u64) -> Option<Waker> {
        let mut waiters = self.waiters.borrow_mut();
        match waiters.futures.first() {
            Some((id, _)) if *id < limit => Some(waiters.futures.remove(0).1),
            _ => None,
        }
    }

    /// Takes the waker of the `poll_*` functions, and the limit for [`next_waiter`](Self::next_waiter).
    pub(crate) fn begin_wake(&self) -> (Option<Waker>, u64) {
        let mut waiters = self.waiters.borrow_mut();
        (waiters.slot.take(), waiters.next_id)
    }
}

pub(crate) struct Sources {
    slots: RefCell<Slab<Rc<SourceState>>>,
    generation: Cell<usize>,
}

impl Sources {
    pub(crate) fn new() -> Self {
        Self {
            slots: RefCell::new(Slab::new()),
            generation: Cell::new(0),
        }
    }

    pub(crate) fn insert(&self, header: Rc<Header>) -> Rc<SourceState> {
        let mut slots = self.slots.borrow_mut();
        let vacant = slots.vacant_entry();
        assert!(vacant.key() < SLOT_MASK, "too many sources");
        // The highest generations are left out: their keys are the poller's own.
        let generation = (self.generation.get() + 1) & (SLOT_MASK >> 1);
        self.generation.set(generation);
        let key = generation << SLOT_BITS | vacant.key();
        debug_assert!(key <= MAX_KEY);
        let state = Rc::new(SourceState {
            header,
            key,
            read: Side::default(),
            write: Side::default(),
            writes_are_requests: Cell::new(false),
            request_counted: Cell::new(false),
        });
        vacant.insert(state.clone());
        state
    }

    /// The source an event belongs to, if it is still there.
    pub(crate) fn get(&self, key: usize) -> Option<Rc<SourceState>> {
        let slots = self.slots.borrow();
        let state = slots.get(key & SLOT_MASK)?;
        (state.key == key).then(|| state.clone())
    }

    pub(crate) fn remove(&self, state: &SourceState) {
        if self.get(state.key).is_some() {
            self.slots.borrow_mut().remove(state.key & SLOT_MASK);
        }
    }

    pub(crate) fn drain(&self) -> Vec<Rc<SourceState>> {
        self.slots.borrow_mut().drain().collect()
    }
}
