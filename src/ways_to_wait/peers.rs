//! Peers outside of the loop, for which a paused clock waits in real time.
//!
//! A paused clock jumps to the next deadline when the loop has nothing to do. While a thread or
//! another process may still answer a read, an accept or a connect, the jump would let a time-out
//! fire before an answer that is on its way. A peer inside the loop acts only when the loop runs
//! it, so there is nothing to wait for, except where the kernel reports late what it has done.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;

use crate::event_loop::core::Core;
use crate::event_loop::io::sources::Direction;
use crate::sys::clock::Counter;
use crate::sys::ends::Ends;
use crate::sys::poller::{self, RawSource, Ready};

/// How long the loop waits for the outside in real time, by default.
const OUTSIDE_TIMEOUT: u64 = 5_000_000_000;

/// What a paused clock knows of the peers of its loop, and how long it waits for those outside.
pub(crate) struct Peers {
    /// How long the loop waits in real time for what it awaits, in nanoseconds.
    timeout: u64,
    /// How much of that it has waited, since what it awaits has changed or has answered.
    spent: Cell<u64>,
    /// What it awaits, as a hash.
    awaited: Cell<u64>,
    /// The keys of the sources that it awaits.
    keys: RefCell<Vec<usize>>,
    /// How often the loop has tried to read or write, by key.
    attempts: RefCell<HashMap<usize, u32>>,
    /// The sources that were made as pairs, by key.
    pairs: RefCell<HashMap<usize, usize>>,
}

impl Peers {
    /// `timeout` is how long the loop waits in real time, in nanoseconds; `None` for the default.
    pub(crate) fn new(timeout: Option<u64>) -> Self {
        Self {
            timeout: timeout.unwrap_or(OUTSIDE_TIMEOUT),
            spent: Cell::new(0),
            awaited: Cell::new(0),
            keys: RefCell::default(),
            attempts: RefCell::default(),
            pairs: RefCell::default(),
        }
    }

    /// Counts an attempt to read or write.
    pub(crate) fn count_attempt(&self, key: usize) {
        let mut attempts = self.attempts.borrow_mut();
        let count = attempts.entry(key).or_default();
        *count = count.wrapping_add(1);
    }

    /// Notes that the sources with these keys are the ends of a pair.
    pub(crate) fn note_pair(&self, one: usize, other: usize) {
        self.pairs.borrow_mut().extend([(one, other), (other, one)]);
    }

    /// Forgets the sources that are not registered any more.
    fn retain(&self, known: &[Known]) {
        let is_known = |key: &usize| known.iter().any(|one| one.key == *key);
        let attempts = &mut *self.attempts.borrow_mut();
        attempts.retain(|key, _| is_known(key));
        // A test may count what the loop keeps.
        attempts.shrink_to(2 * attempts.len());
        let pairs = &mut *self.pairs.borrow_mut();
        pairs.retain(|key, _| is_known(key));
        pairs.shrink_to(2 * pairs.len());
    }
}

/// How long an event takes at most that the kernel reports late.
const LONGEST_DELAY: u64 = 1_000_000_000;

/// Which peers of the loop's descriptors are awaited.
struct Awaited {
    outside: bool,
    /// The descriptors with peers inside the loop, and what they wait for.
    inside: Vec<(RawSource, Ready)>,
}

/// A registered descriptor.
struct Known {
    key: usize,
    source: RawSource,
    ends: Ends,
    /// What an event of it is for. A poll handle is reported by its level.
    waits_for: Option<Ready>,
    /// The key of the source that was made as its peer.
    twin: Option<usize>,
    is_awaited: bool,
    /// It waits to write and not to read, as a socket does that is being connected.
    only_writes: bool,
    /// How often the loop has tried to read or write.
    attempts: u32,
}

impl Peers {
    /// Waits for what is outside of the loop, in real time: up to `timeout` nanoseconds, and no
    /// longer than the limit for peers outside; and for late reports of what is inside. Returns
    /// whether something has arrived.
    pub(crate) fn receives(&self, core: &Core, timeout: u64) -> io::Result<bool> {
        if self.timeout == 0 {
            return Ok(false);
        }
        let awaited = self.awaited_peers(core);
        let mut limit = 0;
        if awaited.outside {
            limit = self.timeout.saturating_sub(self.spent.get()).min(timeout);
        }
        if !awaited.inside.is_empty() {
            limit = limit.max(poller::report_delay());
        }
        if limit == 0 {
            return Ok(false);
        }
        let counter = Counter::new();
        let begun = counter.nanoseconds();
        let mut has_arrived = listen(core, limit)?;
        if !has_arrived && poller::has_late_event(&awaited.inside) {
            has_arrived = listen(core, LONGEST_DELAY)?;
        }
        if !awaited.outside {
            return Ok(has_arrived);
        }
        let keys = self.keys.borrow();
        let has_answered = core.io.has_event_of(&keys);
        self.spent.set(if has_answered {
            0
        } else {
            self.spent
                .get()
                .saturating_add(counter.nanoseconds() - begun)
        });
        Ok(has_arrived)
    }

    /// Returns which peers are awaited. The limit starts again if what is awaited outside differs
    /// from what was awaited before.
    fn awaited_peers(&self, core: &Core) -> Awaited {
        let known = self.known_descriptors(core);
        self.retain(&known);
        let (mut keys, mut awaited_inside) = (Vec::new(), Vec::new());
        let mut hasher = DefaultHasher::new();
        if known.iter().any(|one| one.is_awaited) {
            let inside = Inside::new(&known);
            for one in known.iter().filter(|one| one.is_awaited) {
                if inside.has_peer_of(one) {
                    awaited_inside.extend(one.waits_for.map(|ready| (one.source, ready)));
                } else {
                    keys.push(one.key);
                    // A socket for any peer may serve peers inside: an attempt proves nothing.
                    let is_open = matches!(one.ends, Ends::Open { .. }) && !one.only_writes;
                    (one.key, (!is_open).then_some(one.attempts)).hash(&mut hasher);
                }
            }
        }
        // Children, and the tasks of another runtime, which wait for its own sources.
        let others =
            core.io.awaited_children() + core.waits.hook().map_or(0, |hook| hook.task_count());
        others.hash(&mut hasher);
        let is_awaited = others > 0 || !keys.is_empty();
        if is_awaited && self.awaited.replace(hasher.finish()) != hasher.finish() {
            self.spent.set(0);
        }
        self.keys.replace(keys);
        Awaited {
            outside: is_awaited,
            inside: awaited_inside,
        }
    }

    fn known_descriptors(&self, core: &Core) -> Vec<Known> {
        let (attempts, pairs) = (self.attempts.borrow(), self.pairs.borrow());
        let sources = core.io.sources();
        let sources = sources.iter().filter_map(|source| {
            let reads = [Direction::Read, Direction::Priority, Direction::HangUp];
            let is_read = reads
                .into_iter()
                .any(|direction| source.is_awaited(direction));
            let is_written = source.is_awaited(Direction::Write);
            let directions = [(is_read, Ready::READ), (is_written, Ready::WRITE)];
            let waits_for = directions
                .into_iter()
                .filter_map(|(is_awaited, ready)| is_awaited.then_some(ready))
                .reduce(Ready::with);
            let descriptor = source.descriptor()?;
            Some(Known {
                key: source.key,
                source: descriptor,
                ends: Ends::of(descriptor),
                waits_for,
                twin: pairs.get(&source.key).copied(),
                is_awaited: (is_read || is_written) && source.header.referenced.get(),
                only_writes: is_written && !is_read,
                attempts: attempts.get(&source.key).copied().unwrap_or(0),
            })
        });
        let polled = core.io.poll_handles();
        let polled = polled.iter().filter_map(|poll| {
            Some(Known {
                key: poll.key()?,
                source: poll.descriptor(),
                ends: Ends::of(poll.descriptor()),
                waits_for: None,
                twin: None,
                is_awaited: poll.header.referenced.get(),
                only_writes: false,
                attempts: 0,
            })
        });
        sources.chain(polled).collect()
    }
}

/// Waits for an event or a message, up to `limit` nanoseconds. Returns whether there is one.
fn listen(core: &Core, limit: u64) -> io::Result<bool> {
    let counter = Counter::new();
    let begun = counter.nanoseconds();
    let is_parked = core.executor.shared.inbox.park();
    loop {
        let waited = counter.nanoseconds() - begun;
        if waited >= limit {
            return Ok(false);
        }
        // Without a mark in the inbox there is a message already.
        core.ask_kernel(Some(if is_parked { limit - waited } else { 0 }))?;
        if core.has_arrived() {
            return Ok(true);
        }
    }
}

/// The descriptors of the loop, as peers of each other.
struct Inside<'a> {
    known: &'a [Known],
    /// How many descriptors have these ends.
    counts: HashMap<&'a Ends, usize>,
}

impl<'a> Inside<'a> {
    fn new(known: &'a [Known]) -> Self {
        let mut counts = HashMap::new();
        for one in known {
            *counts.entry(&one.ends).or_default() += 1;
        }
        Self { known, counts }
    }

    fn count(&self, ends: &Ends) -> usize {
        self.counts.get(ends).copied().unwrap_or(0)
    }

    /// Returns whether the peers of a descriptor are descriptors of the loop.
    fn has_peer_of(&self, one: &Known) -> bool {
        if let Some(twin) = one.twin {
            return self.known.iter().any(|other| other.key == twin);
        }
        match &one.ends {
            // Several Unix connections to one name have the same ends: all of them have to have a
            // counterpart.
            Ends::Connected { there, .. } => {
                let peers = one.ends.mirrored().map_or(0, |ends| self.count(&ends));
                peers >= self.count(&one.ends) || self.listens_at(there)
            }
            Ends::Open { .. } if one.only_writes => false,
            Ends::Open { here } => self.known.iter().any(
                |other| matches!(&other.ends, Ends::Connected { there, .. } if here.covers(there)),
            ),
            ends => ends.is_pipe() && self.count(ends) > 1,
        }
    }

    /// Returns whether a socket of the loop waits for peers at the address.
    fn listens_at(&self, address: &crate::sys::ends::Address) -> bool {
        self.known
            .iter()
            .any(|other| matches!(&other.ends, Ends::Open { here } if here.covers(address)))
    }
}
