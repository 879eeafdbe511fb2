//! Events and the names of their listeners.

use std::any::{Any, TypeId};
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::error::Error;
use super::super::reason::Reason;

/// An event: its name, and the type `A` of what its listeners are given. Make it a constant.
///
/// Events with the same name and different `A` are different events.
pub struct Event<A: ?Sized> {
    pub(super) name: &'static str,
    is_monitor: bool,
    /// What an emission without a listener throws.
    pub(super) unheard: Option<fn(&A) -> Reason>,
    arguments: PhantomData<fn(&A)>,
}

impl<A: ?Sized + 'static> Event<A> {
    /// An event that may be emitted with nobody listening.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            is_monitor: false,
            unheard: None,
            arguments: PhantomData,
        }
    }

    /// The event `error` with errors of type `A`, which needs a listener. [`ERROR`](super::ERROR) is the one of this crate.
    ///
    /// Without a listener an emission throws: an [`Error`] itself, and for another type an `Error` with its text. A text
    /// is no error to Node, which throws one with the code `ERR_UNHANDLED_ERROR` in its place.
    #[must_use]
    pub const fn error() -> Self
    where
        A: fmt::Display + Sized,
    {
        Self {
            name: "error",
            is_monitor: false,
            unheard: Some(|error| unheard(error, error)),
            arguments: PhantomData,
        }
    }

    /// The event for those who only watch: their listeners are called first, and the event still needs another listener.
    /// Node's `errorMonitor`, and so is its name: `Symbol(events.errorMonitor)`.
    #[must_use]
    pub const fn monitor(self) -> Self {
        Self {
            name: "Symbol(events.errorMonitor)",
            is_monitor: true,
            ..self
        }
    }

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    pub(super) fn key(self) -> Key {
        Key {
            name: self.name,
            arguments: TypeId::of::<A>(),
            is_monitor: self.is_monitor,
        }
    }
}

impl<A: ?Sized> Clone for Event<A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: ?Sized> Copy for Event<A> {}

impl<A: ?Sized> fmt::Debug for Event<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Event").field(&self.name).finish()
    }
}

/// What the emission of an error without a listener throws.
fn unheard(error: &dyn Any, text: &dyn fmt::Display) -> Reason {
    if let Some(error) = error.downcast_ref::<Error>() {
        return Reason::new(error.clone());
    }
    if let Some(reason) = error.downcast_ref::<Reason>() {
        return reason.clone();
    }
    if error.is::<String>() || error.is::<&'static str>() {
        let text = format!("Unhandled error. ('{text}')");
        return Reason::new(Error::with_code("ERR_UNHANDLED_ERROR", text));
    }
    Reason::new(Error::new(text.to_string()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) name: &'static str,
    arguments: TypeId,
    pub(super) is_monitor: bool,
}

/// Names one listener, for [`EventEmitter::off`](super::EventEmitter::off).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerId {
    pub(super) key: Key,
    pub(super) number: u64,
}

/// The next listener's number. One count for all emitters: an id is good for no other emitter than its own.
static NUMBERS: AtomicU64 = AtomicU64::new(0);

impl ListenerId {
    /// The name of a listener to come.
    pub(super) fn new<A: ?Sized + 'static>(event: Event<A>) -> Self {
        Self {
            key: event.key(),
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
        }
    }
}
