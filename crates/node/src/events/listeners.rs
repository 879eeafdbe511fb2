//! The listeners of an emitter: one flat list, because an idle connection has six of them.

use std::any::{Any, TypeId};
use std::cell::Cell;
use std::rc::Rc;

use super::ERROR;
use super::event::{Key, ListenerId, Mark, Name};
use crate::error::Error;

/// A part of the crate that observes several events of an emitter. It needs no closure for each.
pub(crate) trait Observer {
    /// Called for an event; `token` is the one that [`observe`](super::EventEmitter::observe) got.
    fn notify(self: Rc<Self>, token: u8);

    /// Called for an error, if [`observe_errors`](super::EventEmitter::observe_errors) was called.
    fn listen_for_error(self: Rc<Self>, error: &Error);
}

/// What a listener calls.
#[derive(Clone)]
pub(super) enum Target {
    /// `Calls<A>` for the argument type of the event, or `MonitorCalls<A>`.
    Closure(Rc<dyn Any>),
    /// Observes an event without an argument.
    Observer(Rc<dyn Observer>, u8),
    /// Observes errors.
    ErrorObserver(Rc<dyn Observer>, u8),
}

impl Target {
    /// Returns the type that a closure in its place would have.
    #[inline]
    pub(super) fn calls(&self) -> TypeId {
        match self {
            Self::Closure(calls) => (**calls).type_id(),
            Self::Observer(..) => TypeId::of::<Calls<()>>(),
            Self::ErrorObserver(..) => TypeId::of::<Calls<Error>>(),
        }
    }

    /// Returns whether an observer has added it with a token, or with any.
    fn is_of(&self, observer: &dyn Observer, token: Option<u8>) -> bool {
        match self {
            Self::Closure(_) => false,
            Self::Observer(known, its) | Self::ErrorObserver(known, its) => {
                std::ptr::addr_eq(Rc::as_ptr(known), observer)
                    && token.is_none_or(|token| token == *its)
            }
        }
    }
}

/// Passes an error to an observer. The argument of the event is an error.
pub(super) fn listen_for_error<A: ?Sized + 'static>(observer: &Rc<dyn Observer>, argument: &A) {
    type Notify<A> = fn(Rc<dyn Observer>, &A);
    let notify: Notify<Error> = |observer, error| observer.listen_for_error(error);
    let notify: &dyn Any = &notify;
    let notify = notify.downcast_ref::<Notify<A>>();
    notify.expect("the key contains the argument type")(observer.clone(), argument);
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

/// The closure of a listener for the monitors of an event.
pub(super) struct MonitorCalls<A: ?Sized>(pub(super) Calls<A>);

/// A listener of one event. The target says the type of the event's argument.
pub(super) struct Entry {
    pub(super) name: Name,
    number: u64,
    target: Target,
}

// Six of these for each idle connection of a server.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Entry>() <= 6 * size_of::<usize>());

impl Entry {
    pub(super) fn new(id: ListenerId, name: Name, target: Target) -> Self {
        Self {
            name,
            number: id.number,
            target,
        }
    }

    #[inline]
    fn is_for(&self, key: Key<'_>) -> bool {
        key.is_named(self.name.as_str()) && key.calls == self.target.calls()
    }

    pub(super) fn key(&self) -> Key<'_> {
        Key {
            name: self.name.as_str(),
            calls: self.target.calls(),
        }
    }

    fn id(&self) -> ListenerId {
        ListenerId {
            number: self.number,
        }
    }
}

/// The listeners of all events. Those of one event are neighbours, and the events are in the order
/// of their first listeners.
#[derive(Default)]
pub(super) struct Listeners {
    entries: Vec<Entry>,
    /// How often the list has changed.
    changes: u32,
    /// Whether there was a listener for added or removed listeners. Most emitters never have one.
    was_watched: bool,
    /// Whether a listener for errors was dropped by [`drop_before`](Self::drop_before).
    has_dropped_error_listener: bool,
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

    /// Returns whether there may be a listener for added or removed listeners.
    pub(super) fn was_watched(&self) -> bool {
        self.was_watched
    }

    pub(super) fn has_dropped_error_listener(&self) -> bool {
        self.has_dropped_error_listener
    }

    /// Returns the listeners of an event.
    fn of(&self, key: Key<'_>) -> &[Entry] {
        let start = self.entries.iter().position(|entry| entry.is_for(key));
        let Some(start) = start else { return &[] };
        let rest = &self.entries[start..];
        let end = rest.iter().position(|entry| !entry.is_for(key));
        &rest[..end.unwrap_or(rest.len())]
    }

    pub(super) fn count(&self, key: Key<'_>) -> usize {
        self.of(key).len()
    }

    pub(super) fn snapshot(&self, key: Key<'_>) -> Snapshot {
        let mut entries = self.of(key).iter();
        let mut next = || {
            let entry = entries.next()?;
            Some((entry.number, entry.target.clone()))
        };
        Snapshot {
            first: next(),
            second: next(),
            rest: std::iter::from_fn(next).collect(),
        }
    }

    /// Adds a listener before or behind the others of its event. Returns their number.
    pub(super) fn insert(&mut self, entry: Entry, first: bool) -> usize {
        let key = entry.key();
        self.was_watched |= key.is_about_listeners();
        // From both ends: the listeners of the event itself are not looked at, since there may be
        // thousands of them.
        let all = self.entries.len();
        let start = self.entries.iter().position(|entry| entry.is_for(key));
        let (start, end) = match start {
            Some(start) => {
                let last = self.entries.iter().rposition(|entry| entry.is_for(key));
                (start, last.map_or(start, |last| last + 1))
            }
            None => (all, all),
        };
        let count = end - start;
        // A socket of a server has six listeners: doubling would leave a third of the room unused.
        if self.entries.len() == self.entries.capacity() && self.entries.len() < 8 {
            self.entries.reserve_exact(2);
        }
        let at = if first { start } else { end };
        self.entries.insert(at, entry);
        self.changes = self.changes.wrapping_add(1);
        count + 1
    }

    /// Removes a listener and returns it, so that the caller drops it without a borrow.
    pub(super) fn remove(&mut self, id: ListenerId) -> Option<Entry> {
        // The last one first: most listeners are removed in that order.
        let place = self
            .entries
            .iter()
            .rposition(|entry| entry.number == id.number)?;
        self.changes = self.changes.wrapping_add(1);
        Some(self.entries.remove(place))
    }

    /// Removes the listeners that were added before `mark`, and returns them, so that the caller
    /// drops them without a borrow. The events of `kept` keep theirs.
    pub(super) fn drop_before(&mut self, mark: Mark, kept: &[&str]) -> Vec<Entry> {
        let is_old =
            |entry: &Entry| mark.is_behind(entry.number) && !kept.contains(&entry.name.as_str());
        let is_error = |entry: &Entry| is_old(entry) && entry.name.as_str() == ERROR.name();
        self.has_dropped_error_listener |= self.entries.iter().any(is_error);
        self.changes = self.changes.wrapping_add(1);
        if self.entries.iter().all(is_old) {
            return std::mem::take(&mut self.entries);
        }
        let (old, new) = self.entries.drain(..).partition(is_old);
        self.entries = new;
        old
    }

    /// Returns the listeners of an event.
    pub(super) fn ids(&self, key: Key<'_>) -> Vec<ListenerId> {
        self.of(key).iter().map(Entry::id).collect()
    }

    /// Returns the last listener of an observer, of one token or of any.
    pub(super) fn last_of(&self, observer: &dyn Observer, token: Option<u8>) -> Option<ListenerId> {
        let is_it = |entry: &&Entry| entry.target.is_of(observer, token);
        self.entries.iter().rfind(is_it).map(Entry::id)
    }

    /// Returns the first listener of each event, in the order of JavaScript: that of the first
    /// listeners, except that array indices come first and symbols last.
    pub(super) fn events(&self) -> Vec<&Entry> {
        let mut events: Vec<_> = self.entries.iter().collect();
        events.dedup_by(|next, entry| entry.is_for(next.key()));
        events.sort_by_key(|entry| entry.key().rank());
        events
    }
}
