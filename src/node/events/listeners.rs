//! The listeners of an emitter: one flat list, because an idle connection has seven of them.

use std::any::Any;
use std::cell::Cell;
use std::rc::Rc;

use super::event::{Key, ListenerId};

/// A part of the crate that hears several events of an emitter. It needs no closure for each.
pub(in crate::node) trait Observer {
    /// Called for an event; `token` is the one that [`observe`](super::EventEmitter::observe) got.
    fn hear(self: Rc<Self>, token: u8);
}

/// What a listener calls.
#[derive(Clone)]
pub(super) enum Target {
    /// `Calls<A>` for the argument type of the event.
    Closure(Rc<dyn Any>),
    Observer(Rc<dyn Observer>, u8),
}

/// The closure of a listener, and how often it is called.
pub(super) enum Calls<A: ?Sized> {
    Always(Box<dyn Fn(&A)>),
    /// Empty once it was called.
    Once(Cell<Option<OnceCall<A>>>),
}

type OnceCall<A> = Box<dyn FnOnce(&A)>;

impl<A: ?Sized> Calls<A> {
    pub(super) fn always(call: impl Fn(&A) + 'static) -> Self {
        Self::Always(Box::new(call))
    }

    pub(super) fn once(call: impl FnOnce(&A) + 'static) -> Self {
        Self::Once(Cell::new(Some(Box::new(call))))
    }
}

/// A listener of one event.
pub(super) struct Entry {
    pub(super) id: ListenerId,
    pub(super) target: Target,
}

/// The listeners of all events. Those of one event are neighbours, and the events are in the order
/// of their first listeners.
#[derive(Default)]
pub(super) struct Listeners {
    entries: Vec<Entry>,
    /// How often the list has changed.
    changes: u32,
}

/// The listeners of one event when an emit began. Most events have one or two.
// N113.
pub(super) struct Snapshot {
    first: Option<(u64, Target)>,
    second: Option<(u64, Target)>,
    rest: Vec<(u64, Target)>,
}

impl Snapshot {
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Returns the numbers and targets. They are all dropped with the snapshot, after the emit: a
    /// listener that removes another one must not drop what that one holds.
    pub(super) fn iter(&self) -> impl Iterator<Item = &(u64, Target)> {
        let few = self.first.iter().chain(&self.second);
        few.chain(&self.rest)
    }
}

impl Listeners {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn changes(&self) -> u32 {
        self.changes
    }

    /// Returns the listeners of an event.
    fn of(&self, key: Key) -> &[Entry] {
        let start = self.entries.iter().position(|entry| entry.id.key == key);
        let Some(start) = start else { return &[] };
        let rest = &self.entries[start..];
        let end = rest.iter().position(|entry| entry.id.key != key);
        &rest[..end.unwrap_or(rest.len())]
    }

    pub(super) fn count(&self, key: Key) -> usize {
        self.of(key).len()
    }

    pub(super) fn snapshot(&self, key: Key) -> Snapshot {
        let mut entries = self.of(key).iter();
        let mut next = || {
            let entry = entries.next()?;
            Some((entry.id.number, entry.target.clone()))
        };
        Snapshot {
            first: next(),
            second: next(),
            rest: std::iter::from_fn(next).collect(),
        }
    }

    /// Adds a listener before or behind the others of its event. Returns their number.
    pub(super) fn insert(&mut self, entry: Entry, first: bool) -> usize {
        let key = entry.id.key;
        let start = self.entries.iter().position(|entry| entry.id.key == key);
        let start = start.unwrap_or(self.entries.len());
        let count = self.of(key).len();
        // A socket of a server has six listeners: doubling would leave a third of the room unused.
        if self.entries.len() == self.entries.capacity() && self.entries.len() < 8 {
            self.entries.reserve_exact(2);
        }
        let at = if first { start } else { start + count };
        self.entries.insert(at, entry);
        self.changes = self.changes.wrapping_add(1);
        count + 1
    }

    /// Removes a listener and returns it, so that the caller drops it without a borrow.
    pub(super) fn remove(&mut self, id: ListenerId) -> Option<Entry> {
        let place = self.entries.iter().position(|entry| entry.id == id)?;
        self.changes = self.changes.wrapping_add(1);
        Some(self.entries.remove(place))
    }

    /// Returns the last listener of an event.
    pub(super) fn last(&self, key: Key) -> Option<ListenerId> {
        self.of(key).last().map(|entry| entry.id)
    }

    /// Returns the last listener of an observer, of one token or of any.
    pub(super) fn last_of(&self, observer: &dyn Observer, token: Option<u8>) -> Option<ListenerId> {
        let is_it = |entry: &&Entry| match &entry.target {
            Target::Observer(known, its) => {
                std::ptr::addr_eq(Rc::as_ptr(known), observer)
                    && token.is_none_or(|token| token == *its)
            }
            Target::Closure(_) => false,
        };
        self.entries.iter().rfind(is_it).map(|entry| entry.id)
    }

    /// Returns the events, in the order of their first listeners.
    pub(super) fn keys(&self) -> Vec<Key> {
        let mut keys: Vec<_> = self.entries.iter().map(|entry| entry.id.key).collect();
        keys.dedup();
        keys
    }
}
