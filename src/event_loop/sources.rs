//! The sources of I/O: what is ready in each direction, and who waits for it.
//!
//! Sources are registered once, edge-triggered. An event sets a direction ready; it stays so until
//! the owner finds out by trying that it is not any more. So a busy socket costs no system call but
//! its own reads and writes. A key holds a slot and a generation: an event of a source that is
//! gone, still in the batch when its slot or its descriptor has a new tenant, finds nobody (R94).

use std::cell::{Cell, OnceCell, RefCell};
use std::io;
use std::rc::Rc;
use std::task::Waker;

use super::core::Core;
use super::handles::{Header, Owner};
use super::wait_list::{WaitKey, WaitList};
use crate::kinds::Kind;
use crate::sys::poller::{MAX_KEY, Poller, RawSource, Ready};
use crate::sys::slots::Slots;

/// Half of the key is the slot, the other half the generation.
const SLOT_BITS: u32 = usize::BITS / 2;
const SLOT_MASK: usize = (1 << SLOT_BITS) - 1;

/// The key of the descriptor that tells of changes of files; no source has it.
#[cfg(feature = "fs")]
pub(crate) const WATCHES_KEY: usize = MAX_KEY;

/// What one can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
    /// Urgent data.
    Priority,
    /// The end of what the peer writes.
    HangUp,
}

impl Direction {
    /// What must have happened.
    #[inline]
    pub(crate) const fn ready(self) -> Ready {
        match self {
            Self::Read => Ready::READ,
            Self::Write => Ready::WRITE,
            Self::Priority => Ready::PRIORITY,
            Self::HangUp => Ready::HANG_UP,
        }
    }

    #[inline]
    const fn ready_for_good(self) -> Ready {
        match self {
            Self::Read => Ready::READ_FOR_GOOD,
            Self::Write => Ready::WRITE_FOR_GOOD,
            Self::Priority | Self::HangUp => self.ready(),
        }
    }
}

/// What a source and the loop share.
pub(crate) struct SourceState {
    pub(crate) header: Rc<Header>,
    pub(crate) key: usize,
    /// While it is registered, on behalf of the source.
    registered: Cell<Option<RawSource>>,
    /// Set by events. A direction stays ready until an attempt finds that it is not.
    ready: Cell<Ready>,
    read: Waiters,
    write: Waiters,
    /// For priority and hang-up, which hardly anybody waits for.
    rare: OnceCell<Box<[Waiters; 2]>>,
    /// Whether who waits to write keeps the loop alive although the handle is unref'd, as libuv's
    /// write requests do.
    // Rule R156.
    pub(crate) writes_are_requests: Cell<bool>,
    /// Whether such a wait is counted.
    request_counted: Cell<bool>,
    /// Nobody's wait counts any more, though a waker may be left in a slot.
    is_gone: Cell<bool>,
}

impl SourceState {
    /// From now on [`shut`](Owner::shut) takes the source out of the poller.
    pub(crate) fn belongs_to_source(self: &Rc<Self>, source: RawSource) {
        self.registered.set(Some(source));
        let owner = Rc::downgrade(self);
        self.header.belongs_to(owner);
    }

    /// After a fork: registers the source with the poller of this process.
    pub(super) fn register_again(&self, poller: &Poller) -> io::Result<()> {
        let source = self.registered.get();
        source.map_or(Ok(()), |source| poller.add_again(source, self.key))
    }

    /// Whether the source has left the loop.
    #[inline]
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone.get()
    }

    #[inline]
    pub(crate) fn is_ready(&self, direction: Direction) -> bool {
        self.ready.get().intersects(direction.ready())
    }

    /// An event has come.
    #[inline]
    pub(crate) fn add_ready(&self, ready: Ready) {
        self.ready.set(self.ready.get().with(ready));
    }

    /// No attempt is to be made until [`add_ready`](Self::add_ready) says so again.
    pub(crate) fn put_off(&self, direction: Direction) {
        self.ready.set(self.ready.get().without(direction.ready()));
    }

    /// An attempt would have blocked.
    pub(crate) fn clear_ready(&self, direction: Direction) {
        let gone = direction.ready().with(direction.ready_for_good());
        self.ready.set(self.ready.get().without(gone));
    }

    /// An attempt got less than it asked for: nothing is left until the next event, where events
    /// tell of the end too.
    #[cfg(any(unix, feature = "net"))]
    #[inline]
    pub(crate) fn clear_after_partial(&self, direction: Direction) {
        let ready = self.ready.get();
        if crate::sys::poller::REPORTS_END && !ready.intersects(direction.ready_for_good()) {
            self.ready.set(ready.without(direction.ready()));
        }
    }

    /// Those who wait for a direction.
    #[inline]
    pub(crate) fn waiters(&self, direction: Direction) -> &Waiters {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
            Direction::Priority => &self.rare()[0],
            Direction::HangUp => &self.rare()[1],
        }
    }

    fn rare(&self) -> &[Waiters; 2] {
        self.rare.get_or_init(Box::default)
    }

    #[inline]
    pub(crate) fn is_awaited(&self, direction: Direction) -> bool {
        match direction {
            Direction::Read => self.read.any(),
            Direction::Write => self.write.any(),
            Direction::Priority => self.rare.get().is_some_and(|rare| rare[0].any()),
            Direction::HangUp => self.rare.get().is_some_and(|rare| rare[1].any()),
        }
    }

    /// Somebody waits for a direction now: counts that, unless it is.
    #[inline(always)]
    pub(crate) fn count_wait(&self, core: &Core, direction: Direction) {
        let is_request = direction == Direction::Write && self.writes_are_requests.get();
        let counted = if is_request {
            &self.request_counted
        } else {
            &self.header.active
        };
        if !counted.get() {
            self.count_waits(core);
        }
    }

    /// Whether somebody waits to read and nobody to write, and the loop's books say so: by far the
    /// most usual case.
    #[inline]
    pub(crate) fn reads_only(&self) -> bool {
        self.read.any()
            && self.header.active.get()
            && !self.write.any()
            && !self.request_counted.get()
    }

    /// Brings the loop's books in line with who waits: after somebody began, gave up, or was woken
    /// and had the time to wait again.
    #[inline(never)]
    pub(crate) fn count_waits(&self, core: &Core) {
        if self.is_gone.get() {
            return;
        }
        let write = self.write.any();
        let request = write && self.writes_are_requests.get();
        let active = self.read.any()
            || write && !request
            || self.is_awaited(Direction::Priority)
            || self.is_awaited(Direction::HangUp);
        core.set_active(&self.header, active);
        if self.request_counted.replace(request) != request {
            core.count(Kind::Io, request);
        }
    }

    /// Whether a wait keeps the loop alive although the handle is unref'd.
    pub(super) fn has_request(&self) -> bool {
        self.request_counted.get()
    }

    /// The directions that somebody waits for, and what the wakers of those point to.
    pub(super) fn waits(&self) -> Vec<(Direction, Vec<*const ()>)> {
        use Direction::{HangUp, Priority, Read, Write};
        [Read, Write, Priority, HangUp]
            .into_iter()
            .filter(|direction| self.is_awaited(*direction))
            .map(|direction| (direction, self.waiters(direction).wakers()))
            .collect()
    }

    /// The source is gone: nobody waits for it any more.
    pub(crate) fn end_waits(&self, core: &Core) {
        self.is_gone.set(true);
        core.set_active(&self.header, false);
        if self.request_counted.replace(false) {
            core.count(Kind::Io, false);
        }
    }
}

impl Owner for SourceState {
    fn shut(&self, core: &Core) {
        core.sources.remove(self);
        self.end_waits(core);
        self.ready.set(Ready::default());
        if let Some(source) = self.registered.take() {
            core.poller.remove(source);
        }
    }

    fn take_waiters(&self) -> Vec<Waker> {
        let waits = self.waits().into_iter();
        waits
            .flat_map(|(direction, _)| self.waiters(direction).take_all())
            .collect()
    }
}

/// Those who wait for one direction.
#[derive(Default)]
pub(crate) struct Waiters {
    /// The one place of the `poll_*` functions: the last caller has it. It keeps its waker when
    /// that was woken: the same task will probably wait again, which costs a comparison then.
    slot: Cell<Option<Waker>>,
    /// Apart: a stream that is read through `poll_*` has none.
    futures: OnceCell<Box<RefCell<WaitList>>>,
    /// Who waits: [`SLOT`], [`FUTURES`], both or none.
    waiting: Cell<u8>,
}

/// The waker in the slot waits.
const SLOT: u8 = 1;
/// Futures wait.
const FUTURES: u8 = 2;

impl Waiters {
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.waiting.get() != 0
    }

    #[inline]
    pub(crate) fn have_futures(&self) -> bool {
        self.waiting.get() & FUTURES != 0
    }

    #[inline]
    fn set_waiting(&self, who: u8, waits: bool) {
        let others = self.waiting.get() & !who;
        self.waiting.set(if waits { others | who } else { others });
    }

    /// Makes `waker` the one to be woken for the `poll_*` functions.
    #[inline(always)]
    pub(crate) fn wait_in_slot(&self, waker: &Waker) {
        match self.slot.take() {
            Some(current) if current.will_wake(waker) => {
                self.slot.set(Some(current));
                self.set_waiting(SLOT, true);
            }
            before => self.change_slot(before, waker),
        }
    }

    /// Another waker for the slot, which is empty now. Apart, since it is rare.
    #[inline(never)]
    fn change_slot(&self, before: Option<Waker>, waker: &Waker) {
        self.slot.set(Some(waker.clone()));
        self.set_waiting(SLOT, true);
        drop(before);
    }

    /// Takes the waker of the `poll_*` functions out, if it waits; [`keep`](Self::keep) takes it
    /// back.
    #[inline]
    pub(crate) fn take_slot(&self) -> Option<Waker> {
        if self.waiting.get() & SLOT != 0 {
            self.set_waiting(SLOT, false);
            self.slot.take()
        } else {
            None
        }
    }

    /// A waker that was woken goes back to its place, unless that has been taken meanwhile.
    #[inline]
    pub(crate) fn keep(&self, waker: Waker) {
        let newer = self.slot.take();
        match newer {
            None => self.slot.set(Some(waker)),
            Some(_) => {
                self.slot.set(newer);
                drop(waker);
            }
        }
    }

    /// Adds a future, or renews the waker of the one with this key. Returns the key.
    pub(crate) fn wait(&self, key: Option<WaitKey>, waker: &Waker) -> WaitKey {
        let new = waker.clone();
        let mut list = self.futures.get_or_init(Box::default).borrow_mut();
        let renewed = match key {
            Some(key) => list.replace(key, new).map(|before| (key, before)),
            None => Err(new),
        };
        let (key, before) = match renewed {
            Ok((key, before)) => (key, Some(before)),
            Err(new) => (list.push(new), None),
        };
        self.set_waiting(FUTURES, true);
        drop(list);
        // Outside the borrow: the drop of a waker may be anybody's code.
        drop(before);
        key
    }

    /// Takes a future back.
    pub(crate) fn stop_waiting(&self, key: WaitKey) {
        let Some(futures) = self.futures.get() else {
            return;
        };
        let mut list = futures.borrow_mut();
        let removed = list.remove(key);
        self.set_waiting(FUTURES, !list.is_empty());
        drop(list);
        drop(removed);
    }

    /// What the wakers of those who wait point to.
    fn wakers(&self) -> Vec<*const ()> {
        let slot = self.slot.take();
        let in_slot = slot.as_ref().filter(|_| self.waiting.get() & SLOT != 0);
        let mut wakers: Vec<_> = in_slot.map(Waker::data).into_iter().collect();
        self.slot.set(slot);
        if let Some(futures) = self.futures.get() {
            wakers.extend(futures.borrow().iter().map(Waker::data));
        }
        wakers
    }

    /// Takes all out.
    fn take_all(&self) -> Vec<Waker> {
        let futures = std::iter::from_fn(|| self.next_before(self.limit()));
        self.take_slot().into_iter().chain(futures).collect()
    }

    /// Wakes all who wait now.
    pub(crate) fn wake_all(&self) {
        if let Some(waker) = self.take_slot() {
            waker.wake_by_ref();
            self.keep(waker);
        }
        let limit = self.limit();
        while let Some(waker) = self.next_before(limit) {
            waker.wake();
        }
    }

    /// The number that the next future gets: one with a lower number waits already.
    #[inline]
    pub(crate) fn limit(&self) -> u64 {
        self.futures
            .get()
            .map_or(0, |futures| futures.borrow().next_number())
    }

    /// Takes the next future out that has a lower number than `limit`.
    #[inline]
    pub(crate) fn next_before(&self, limit: u64) -> Option<Waker> {
        let mut list = self.futures.get()?.borrow_mut();
        let waker = list.pop_before(limit);
        self.set_waiting(FUTURES, !list.is_empty());
        waker
    }
}

pub(crate) struct Sources {
    slots: Slots<SourceState>,
    generation: Cell<usize>,
}

impl Sources {
    pub(crate) fn new() -> Self {
        Self {
            slots: Slots::new(),
            generation: Cell::new(0),
        }
    }

    pub(crate) fn insert(&self, header: Rc<Header>) -> Rc<SourceState> {
        let slot = self.slots.next();
        assert!(slot < SLOT_MASK, "too many sources");
        // The highest generations are left out: their keys are the poller's and the watches'.
        let generation = (self.generation.get() + 1) & (SLOT_MASK >> 1);
        self.generation.set(generation);
        let key = generation << SLOT_BITS | slot;
        debug_assert!(key <= MAX_KEY);
        let state = Rc::new(SourceState {
            header,
            key,
            registered: Cell::new(None),
            ready: Cell::default(),
            read: Waiters::default(),
            write: Waiters::default(),
            rare: OnceCell::new(),
            writes_are_requests: Cell::new(false),
            request_counted: Cell::new(false),
            is_gone: Cell::new(false),
        });
        self.slots.insert(state.clone());
        state
    }

    /// The source an event belongs to, if it is still there.
    #[inline]
    pub(crate) fn get(&self, key: usize) -> Option<Rc<SourceState>> {
        self.slots
            .get(key & SLOT_MASK)
            .filter(|state| state.key == key)
    }

    pub(crate) fn remove(&self, state: &SourceState) {
        if self.get(state.key).is_some() {
            drop(self.slots.remove(state.key & SLOT_MASK));
        }
    }

    pub(super) fn list(&self) -> Vec<Rc<SourceState>> {
        self.slots.list()
    }

    pub(crate) fn drain(&self) -> Vec<Rc<SourceState>> {
        self.slots
            .take()
            .into_iter()
            .map(|(_, state)| state)
            .collect()
    }
}
