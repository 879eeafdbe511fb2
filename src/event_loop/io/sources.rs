//! The I/O sources: the readiness of each direction, and its waiters.
//!
//! A source is registered once, edge-triggered; for writing, when a write has to wait. An event
//! makes a direction ready; it stays ready until an attempt would block. So a busy socket costs no
//! system calls besides its reads and writes. A key consists of a slot and a generation: an event
//! of a closed source that is still in the batch does not reach a new source in its slot or with
//! its descriptor.
// Rules of tests/LIBUV.md: R94.
// Marks: as in `io/bytes.rs`: each read and write passes them. What is `inline(never)` is for the
// first wait and the last.

use std::cell::{Cell, OnceCell};
use std::io;
use std::rc::Rc;
use std::task::Waker;

use super::Io;
use super::waiters::{Waiters, Wakers};
use crate::event_loop::core::Core;
use crate::event_loop::ledger::handles::{Header, Owner};
use crate::keeper::Keeper;
use crate::label::{Label, Role};
use crate::raw::slots::{Held, HeldSlots};
use crate::sys::poller::{Interest, MAX_KEY, Poller, RawSource, Ready};

/// The low bits of a key are the slot, the others the generation. 32 bits leave room for as many
/// slots as a process of Linux may have descriptors, 2^20.
const SLOT_BITS: u32 = if usize::BITS == 64 { 32 } else { 20 };
const SLOT_MASK: usize = (1 << SLOT_BITS) - 1;
/// The largest generation. The highest bit of a key is not used: such keys belong to the poller,
/// the poll handles and the watches.
const LAST_GENERATION: usize = usize::MAX >> (SLOT_BITS + 1);

/// What a task can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
    /// Urgent (out-of-band) data.
    Priority,
    /// The peer has shut down its writing direction.
    HangUp,
}

impl Direction {
    /// All directions, in the order in which an event wakes their waiters.
    pub(super) const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Priority, Self::HangUp];

    /// Returns the readiness that ends a wait for this direction.
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

/// The state that a source shares with the loop.
pub(crate) struct SourceState {
    pub(crate) header: Rc<Header>,
    pub(crate) key: usize,
    /// The descriptor, while it is registered.
    pub(super) registered: Cell<Option<RawSource>>,
    /// The directions that it is registered for.
    pub(crate) interest: Cell<Interest>,
    /// The readiness, set by events. A direction stays ready until an attempt would block.
    ready: Cell<Ready>,
    /// [`WRITES_ARE_REQUESTS`], [`REQUEST_COUNTED`], [`GONE`] and [`ASKED`], any of them or none.
    flags: Cell<u8>,
    /// The kinds of waiters of each direction.
    waiting: [Cell<u8>; 4],
    read: Wakers,
    /// The wakers for writing, priority and hang-up, boxed because such waits are rare: most writes
    /// find room.
    rare: OnceCell<Box<[Wakers; 3]>>,
    /// What reports say of the descriptor besides what the kernel reports.
    role: Cell<Role>,
}

/// A waiting writer keeps the loop alive although the handle is unref'd, as libuv's write requests
/// do.
// Rule R156.
const WRITES_ARE_REQUESTS: u8 = 1;
/// Such a wait is counted as a keeper.
const REQUEST_COUNTED: u8 = 1 << 1;
/// Waits no longer count, though a waker may be left in a slot.
const GONE: u8 = 1 << 2;
/// The way to wait decides about attempts, and counts them.
const ASKED: u8 = 1 << 3;

// One of these for each connection: another word would be another 16 bytes of the allocator.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<SourceState>() <= 56 + size_of::<Option<RawSource>>());

impl SourceState {
    #[inline]
    fn is(&self, flag: u8) -> bool {
        self.flags.get() & flag != 0
    }

    /// Sets or clears a flag. Returns whether that was a change.
    #[inline]
    fn change(&self, flag: u8, is_set: bool) -> bool {
        let before = self.flags.get();
        let now = if is_set {
            before | flag
        } else {
            before & !flag
        };
        self.flags.set(now);
        before != now
    }

    /// Makes waiting writers keep the loop alive although the handle is unref'd.
    pub(crate) fn count_writes_as_requests(&self) {
        self.change(WRITES_ARE_REQUESTS, true);
    }

    /// Sets the descriptor, which [`stop_for_good`](Owner::stop_for_good) deregisters from the
    /// poller.
    pub(crate) fn belongs_to_source(self: &Rc<Self>, source: RawSource, interest: Interest) {
        self.registered.set(Some(source));
        self.interest.set(interest);
        self.header.belongs_to(self);
    }

    /// Registers the source with the poller of the child process after a fork.
    pub(in crate::event_loop) fn register_again(&self, poller: &Poller) -> io::Result<()> {
        let source = self.registered.get();
        source.map_or(Ok(()), |source| {
            poller.add_again(source, self.key, self.interest.get())
        })
    }

    /// Sets the role of a source that has none.
    pub(crate) fn set_role(&self, core: &Core, role: Role) {
        self.role.set(role);
        #[cfg(feature = "cluster")]
        if role == Role::Accepted {
            crate::event_loop::outstanding::Outstanding::note_accepted(&core.executor.shared);
        }
        let _ = core;
    }

    /// Returns whether the source was deregistered.
    #[inline]
    pub(crate) fn is_gone(&self) -> bool {
        self.is(GONE)
    }

    #[inline]
    pub(crate) fn is_ready(&self, direction: Direction) -> bool {
        self.ready.get().intersects(direction.ready())
    }

    /// Adds the readiness of an event.
    #[inline]
    pub(crate) fn add_ready(&self, ready: Ready) {
        self.ready.set(self.ready.get().with(ready));
    }

    /// Clears the readiness of a deferred direction, until [`add_ready`](Self::add_ready) restores
    /// it.
    pub(crate) fn defer(&self, direction: Direction) {
        self.ready.set(self.ready.get().without(direction.ready()));
    }

    /// Clears the readiness of a direction after an attempt that would have blocked.
    pub(crate) fn clear_ready(&self, direction: Direction) {
        let gone = direction.ready().with(direction.ready_for_good());
        self.ready.set(self.ready.get().without(gone));
    }

    /// Clears the readiness of a direction after a partial transfer, if that proves that the buffer
    /// is exhausted until the next event. It does so only where EOF is an event of its own, since
    /// otherwise the next attempt must find EOF.
    #[inline]
    pub(crate) fn clear_after_partial(&self, direction: Direction) {
        let ready = self.ready.get();
        let doubts = direction.ready_for_good().with(Ready::SHORT_PROVES_NOTHING);
        if crate::sys::poller::REPORTS_END && !ready.intersects(doubts) {
            self.ready.set(ready.without(direction.ready()));
        }
    }

    /// Returns the waiters of a direction.
    #[inline]
    pub(crate) fn waiters(&self, direction: Direction) -> Waiters<'_> {
        let wakers = match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.rare()[0],
            Direction::Priority => &self.rare()[1],
            Direction::HangUp => &self.rare()[2],
        };
        Waiters {
            wakers,
            waiting: &self.waiting[direction as usize],
        }
    }

    fn rare(&self) -> &[Wakers; 3] {
        self.rare.get_or_init(Box::default)
    }

    #[inline]
    pub(crate) fn is_awaited(&self, direction: Direction) -> bool {
        self.waiting[direction as usize].get() != 0
    }

    /// Returns whether a wait for this direction counts already. No wait for a source that was
    /// deregistered counts.
    #[inline(always)]
    pub(crate) fn is_wait_counted(&self, direction: Direction) -> bool {
        match direction {
            Direction::Write if self.is(WRITES_ARE_REQUESTS) => self.is(REQUEST_COUNTED),
            _ => self.header.active.get(),
        }
    }

    /// Updates liveness for a new wait. Returns `false` if the source was deregistered.
    #[inline(never)]
    pub(crate) fn count_first_wait(&self, core: &Core, direction: Direction) -> bool {
        if self.is_gone() {
            return false;
        }
        if direction == Direction::Write && self.is(WRITES_ARE_REQUESTS) {
            self.count_waits(core);
        } else {
            core.set_active(&self.header, true);
        }
        true
    }

    /// Asks the way to wait about each attempt from now on.
    pub(crate) fn ask_about_attempts(&self) {
        self.change(ASKED, true);
    }

    /// Returns whether the way to wait is asked about each attempt.
    // A program that is no test does not ask: the flag is not read.
    #[inline(always)]
    pub(crate) fn is_asked(&self) -> bool {
        cfg!(any(test, feature = "test-util")) && self.is(ASKED)
    }

    /// Updates liveness from the waiters: after a wait began, was dropped, or was woken and has had
    /// the chance to start again.
    #[inline(never)]
    pub(crate) fn count_waits(&self, core: &Core) {
        if self.is_gone() {
            return;
        }
        let write = self.is_awaited(Direction::Write);
        let request = write && self.is(WRITES_ARE_REQUESTS);
        let active = self.is_awaited(Direction::Read)
            || write && !request
            || self.is_awaited(Direction::Priority)
            || self.is_awaited(Direction::HangUp);
        core.set_active(&self.header, active);
        if self.change(REQUEST_COUNTED, request) {
            core.ledger.change(Keeper::Io, request);
        }
    }

    /// Returns whether a wait keeps the loop alive although the handle is unref'd.
    pub(crate) fn has_request(&self) -> bool {
        self.is(REQUEST_COUNTED)
    }

    /// Returns the directions with waiters, and the data pointers of their wakers.
    pub(crate) fn waits(&self) -> Vec<(Direction, Vec<*const ()>)> {
        Direction::ALL
            .into_iter()
            .filter(|direction| self.is_awaited(*direction))
            .map(|direction| (direction, self.waiters(direction).wakers()))
            .collect()
    }

    /// Stops counting the waits of a source that was closed.
    pub(crate) fn end_waits(&self, core: &Core) {
        self.change(GONE, true);
        core.set_active(&self.header, false);
        if self.change(REQUEST_COUNTED, false) {
            core.ledger.change(Keeper::Io, false);
        }
    }
}

/// What the sockets of a network ask.
#[cfg(feature = "net")]
impl SourceState {
    pub(crate) fn role(&self) -> Role {
        self.role.get()
    }

    /// Returns whether both directions are closed. A hang-up of one leaves the other open.
    pub(crate) fn is_hung_up(&self) -> bool {
        let ready = self.ready.get();
        ready.intersects(Ready::HANG_UP) && ready.intersects(Ready::WRITE_FOR_GOOD)
    }

    /// Returns whether the peer has closed its writing direction, and whether writing fails.
    pub(crate) fn closed_ends(&self) -> (bool, bool) {
        let ready = self.ready.get();
        (
            ready.intersects(Ready::HANG_UP),
            ready.intersects(Ready::WRITE_FOR_GOOD),
        )
    }

    /// Returns what [`set_short_as_drained`](Self::set_short_as_drained) has set.
    pub(crate) fn is_short_drained(&self) -> bool {
        !self.ready.get().intersects(Ready::SHORT_PROVES_NOTHING)
    }

    /// Declares whether a read or write that moves fewer bytes than requested has drained or filled
    /// the stream. Without the declaration, a short call proves nothing.
    pub(crate) fn set_short_as_drained(&self, is_drained: bool) {
        let ready = self.ready.get();
        self.ready.set(if is_drained {
            ready.without(Ready::SHORT_PROVES_NOTHING)
        } else {
            ready.with(Ready::SHORT_PROVES_NOTHING)
        });
    }
}

impl Owner for SourceState {
    fn label(&self, core: &Core) -> Option<Label> {
        match self.registered.get() {
            Some(source) => Some(source.label(self.role.get(), core.io.connects.target(self.key))),
            None => core.waits.chosen()?.label(self.key, self.role.get()),
        }
    }

    // A child is active until it has exited, though nothing may wait for its descriptor.
    fn is_still_active(&self) -> bool {
        self.header.kind == Keeper::Child
            || Direction::ALL.into_iter().any(|one| self.is_awaited(one))
    }

    fn stop_for_good(&self, core: &Core) {
        #[cfg(feature = "cluster")]
        if self.role.get() == Role::Accepted && !self.is_gone() {
            core.outstanding.note_closed(&core.executor.shared);
        }
        core.io.sources.remove(self);
        self.end_waits(core);
        self.ready.set(Ready::default());
        if let Some(source) = self.registered.take() {
            core.io.poller.remove(source);
        }
    }

    fn take_waiters(&self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for direction in Direction::ALL {
            if self.is_awaited(direction) {
                wakers.append(&mut self.waiters(direction).take_all());
            }
        }
        wakers
    }
}

pub(super) struct Sources {
    pub(super) slots: HeldSlots<SourceState>,
    generation: Cell<usize>,
}

impl Sources {
    pub(crate) fn new() -> Self {
        Self {
            slots: HeldSlots::new(),
            generation: Cell::new(0),
        }
    }

    pub(crate) fn insert(&self, header: Rc<Header>) -> Rc<SourceState> {
        let slot = self.slots.next();
        assert!(slot < SLOT_MASK, "too many sources");
        let generation = (self.generation.get() + 1) & LAST_GENERATION;
        self.generation.set(generation);
        let key = generation << SLOT_BITS | slot;
        debug_assert!(key <= MAX_KEY);
        let state = Rc::new(SourceState {
            header,
            key,
            registered: Cell::new(None),
            interest: Cell::new(Interest::Both),
            ready: Cell::new(Ready::SHORT_PROVES_NOTHING),
            flags: Cell::new(0),
            waiting: Default::default(),
            read: Wakers::default(),
            rare: OnceCell::new(),
            role: Cell::default(),
        });
        self.slots.insert(state.clone());
        state
    }

    pub(crate) fn remove(&self, state: &SourceState) {
        if source_of(&self.slots.hold(), state.key).is_some() {
            self.slots.remove(state.key & SLOT_MASK);
        }
    }

    pub(in crate::event_loop) fn list(&self) -> Vec<Rc<SourceState>> {
        self.slots.list()
    }

    pub(crate) fn drain(&self) -> Vec<Rc<SourceState>> {
        self.slots.take()
    }
}

/// Returns the source of an event, if it is still registered. It is not freed while it is held.
#[inline(always)]
pub(super) fn source_of<'a>(
    held: &'a Held<'_, SourceState>,
    key: usize,
) -> Option<&'a SourceState> {
    held.get(key & SLOT_MASK).filter(|state| state.key == key)
}

impl Io {
    /// Adds a source. `is_paused` is whether the clock is paused.
    #[inline]
    pub(crate) fn add_source(&self, header: Rc<Header>, is_paused: bool) -> Rc<SourceState> {
        let source = self.sources.insert(header);
        if is_paused {
            source.ask_about_attempts();
        }
        source
    }

    /// Returns the headers of the accepted connections.
    #[cfg(feature = "cluster")]
    pub(crate) fn accepted(&self) -> Vec<Rc<Header>> {
        let sources = self.sources.list().into_iter();
        let accepted = sources.filter(|source| source.role.get() == Role::Accepted);
        accepted.map(|source| source.header.clone()).collect()
    }

    #[inline]
    pub(crate) fn remove_source(&self, state: &SourceState) {
        self.sources.remove(state);
    }
}
