//! The events of one wait.

use std::cell::Cell;
use std::io;

use super::backend::Queue;
use super::selector::Selector;
use super::{BATCH, Event, PollEvents, Ready};

/// What an event says, in whatever form a backend keeps it.
pub(in crate::sys) trait Report: Copy {
    fn key(self) -> usize;

    /// Returns the readiness of an edge-triggered source.
    fn ready(self) -> Ready;

    /// Returns the requested events that it reports for a level-triggered source; `None` if it
    /// reports none of them.
    ///
    /// # Errors
    ///
    /// `EBADF` if the source has an error, as in libuv.
    fn level(self, asked: PollEvents) -> Option<io::Result<PollEvents>>;

    /// Creates the event of a source with this readiness.
    #[cfg(feature = "test-util")]
    fn of(event: Event) -> Self;

    /// Adds a later event of the same source.
    #[cfg(feature = "test-util")]
    #[must_use]
    fn with(self, later: Self) -> Self;
}

/// An event as the backend of the platform reports it.
type Reported = <Queue as Selector>::Event;

/// The events of one wait, including that of the notifier, with the key
/// [`NOTIFY_KEY`](super::NOTIFY_KEY).
pub(crate) struct Events {
    list: Vec<Reported>,
    next: Cell<usize>,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self {
            list: Vec::with_capacity(BATCH),
            next: Cell::new(0),
        }
    }

    /// Forgets the events.
    pub(crate) fn clear(&mut self) {
        self.emptied();
    }

    /// Forgets the events, and returns the list for those of the next wait.
    pub(in crate::sys) fn emptied(&mut self) -> &mut Vec<Reported> {
        self.list.clear();
        self.next.set(0);
        &mut self.list
    }

    /// Returns the number of events of the wait.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the keys of the events.
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn keys(&self) -> impl Iterator<Item = usize> {
        self.list.iter().map(|event| event.key())
    }

    /// Returns the next event, without consuming it; see [`advance`](Self::advance).
    #[inline]
    pub(crate) fn next(&self) -> Option<Event> {
        let event = *self.list.get(self.next.get())?;
        Some(Event {
            key: event.key(),
            ready: event.ready(),
        })
    }

    /// Returns the requested events that the next event reports for a level-triggered source;
    /// `None` if it reports none of them.
    ///
    /// # Errors
    ///
    /// `EBADF` if the source has an error, as in libuv.
    pub(crate) fn reported(&self, asked: PollEvents) -> Option<io::Result<PollEvents>> {
        self.list.get(self.next.get())?.level(asked)
    }

    /// Consumes the next event.
    #[inline]
    pub(crate) fn advance(&self) {
        self.next.set(self.next.get() + 1);
    }

    /// Returns whether all events are consumed.
    pub(crate) fn is_empty(&self) -> bool {
        self.next.get() >= self.list.len()
    }

    /// Takes all events of the wait.
    #[cfg(feature = "test-util")]
    pub(crate) fn take_all(&mut self) -> Vec<RawEvent> {
        self.next.set(0);
        self.list.drain(..).map(RawEvent).collect()
    }

    /// Makes `events` the events of the wait.
    #[cfg(feature = "test-util")]
    pub(crate) fn put_all(&mut self, events: impl Iterator<Item = RawEvent>) {
        self.emptied().extend(events.map(|event| event.0));
    }
}

/// An event as the backend has reported it.
#[cfg(feature = "test-util")]
pub(crate) struct RawEvent(Reported);

#[cfg(feature = "test-util")]
impl RawEvent {
    /// Creates the event of a source with this readiness.
    pub(crate) fn of(event: Event) -> Self {
        Self(Reported::of(event))
    }

    pub(crate) fn key(&self) -> usize {
        self.0.key()
    }

    /// Adds a later event of the same source.
    pub(crate) fn merge(&mut self, later: &Self) {
        self.0 = self.0.with(later.0);
    }
}
