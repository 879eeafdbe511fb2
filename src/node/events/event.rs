//! Events and the names of their listeners.

use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;

/// An event: its name, and the type `A` of what its listeners are given. Make it a constant.
///
/// Events with the same name and different `A` are different events.
pub struct Event<A: ?Sized> {
    pub(super) name: &'static str,
    is_monitor: bool,
    /// How to write the arguments into the panic of an emission that nobody hears.
    pub(super) describe: Option<fn(&A) -> String>,
    arguments: PhantomData<fn(&A)>,
}

impl<A: ?Sized + 'static> Event<A> {
    /// An event that may be emitted with nobody listening.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            is_monitor: false,
            describe: None,
            arguments: PhantomData,
        }
    }

    /// The event `error` with errors of type `A`: one that somebody has to hear. [`ERROR`](super::ERROR) is the one of this crate.
    #[must_use]
    pub const fn error() -> Self
    where
        A: fmt::Display,
    {
        Self {
            name: "error",
            is_monitor: false,
            describe: Some(|error| error.to_string()),
            arguments: PhantomData,
        }
    }

    /// The same event for those who only watch: their listeners are called first, and do not count as anybody who heard
    /// it. Node's `errorMonitor`.
    #[must_use]
    pub const fn monitor(self) -> Self {
        Self {
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) name: &'static str,
    arguments: TypeId,
    is_monitor: bool,
}

/// Names one listener, for [`EventEmitter::off`](super::EventEmitter::off).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerId {
    pub(super) key: Key,
    pub(super) number: u64,
}
