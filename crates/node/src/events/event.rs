//! Events, and the ids of their listeners.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::listeners::{Calls, MonitorCalls};
use super::{NEW_LISTENER, REMOVE_LISTENER};
use crate::error::Error;
use crate::reason::Reason;

/// An event: its name, and the type `A` of the argument of its listeners. Define it as a constant.
///
/// Events with the same name and different `A` are different events.
///
/// # Examples
///
/// ```
/// use phaseloop_node::events::{Event, EventEmitter};
///
/// const MOVED: Event<(i32, i32)> = Event::new("moved");
///
/// fn main() {
///     let emitter = EventEmitter::new();
///     emitter.on(MOVED, |(x, y)| assert_eq!((*x, *y), (3, 4)));
///     assert!(emitter.emit(MOVED, (3, 4)));
/// }
/// ```
pub struct Event<A: ?Sized> {
    pub(super) name: &'static str,
    is_monitor: bool,
    /// Creates the error that an emission without a listener throws.
    pub(super) unheard: Option<fn(&A) -> Reason>,
    arguments: PhantomData<fn(&A)>,
}

impl<A: ?Sized + 'static> Event<A> {
    /// Creates an event that may be emitted without a listener.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            is_monitor: false,
            unheard: None,
            arguments: PhantomData,
        }
    }

    /// Creates the event `error` with errors of type `A`, which needs a listener.
    /// [`ERROR`](super::ERROR) is the one of this crate.
    ///
    /// An emission without a listener throws: an [`Error`] itself, and for another type an `Error`
    /// with its text. A string is no error in Node, which throws an error with the code
    /// `ERR_UNHANDLED_ERROR` in its place.
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

    /// Returns the event for monitors: their listeners are called first, and the event still needs
    /// another listener. JavaScript: `events.errorMonitor`; the name is
    /// `Symbol(events.errorMonitor)`.
    #[must_use]
    pub const fn monitor(self) -> Self {
        Self {
            name: MONITOR,
            is_monitor: true,
            ..self
        }
    }

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    pub(super) fn key(self) -> Key<'static> {
        Key {
            name: self.name,
            calls: calls_of::<A>(self.is_monitor),
        }
    }
}

/// Returns the type of what the listeners of an event call.
fn calls_of<A: ?Sized + 'static>(is_monitor: bool) -> TypeId {
    match is_monitor {
        true => TypeId::of::<MonitorCalls<A>>(),
        false => TypeId::of::<Calls<A>>(),
    }
}

/// Returns the key of an event.
pub(super) fn key_of<A: ?Sized + 'static>(event: &impl EventName<A>) -> Key<'_> {
    Key {
        name: event.name(),
        calls: calls_of::<A>(event.is_monitor()),
    }
}

/// What names an event: an [`Event`], or a text that is made at run time.
///
/// The listeners of a text say the type of their argument; an `emit` does, too. A text and an
/// [`Event::new`] with the same name and argument are the same event. A text is no [error
/// event](Event::error): `"error"` without a listener throws nothing.
///
/// # Examples
///
/// ```
/// use phaseloop_node::events::EventEmitter;
///
/// fn main() {
///     let emitter = EventEmitter::new();
///     for room in ["kitchen", "hall"] {
///         let topic = format!("light/{room}");
///         emitter.on(topic, move |is_on: &bool| println!("{room}: {is_on}"));
///     }
///     assert!(emitter.emit::<bool, _>("light/hall", true));
///     assert!(!emitter.emit::<bool, _>("light/cellar", true));
/// }
/// ```
pub trait EventName<A: ?Sized + 'static> {
    /// Returns the name.
    fn name(&self) -> &str;

    #[doc(hidden)]
    fn into_name(self) -> Name;

    #[doc(hidden)]
    fn is_monitor(&self) -> bool {
        false
    }

    #[doc(hidden)]
    fn unheard(&self) -> Option<fn(&A) -> Reason> {
        None
    }
}

impl<A: ?Sized + 'static> EventName<A> for Event<A> {
    fn name(&self) -> &str {
        self.name
    }

    fn into_name(self) -> Name {
        Name::Fixed(self.name)
    }

    fn is_monitor(&self) -> bool {
        self.is_monitor
    }

    fn unheard(&self) -> Option<fn(&A) -> Reason> {
        self.unheard
    }
}

/// Implements `EventName` for types of texts.
macro_rules! named_by {
    ($($text:ty),+) => {$(
        impl<A: ?Sized + 'static> EventName<A> for $text {
            fn name(&self) -> &str {
                self
            }

            fn into_name(self) -> Name {
                Name::Made(Rc::new(self.into()))
            }
        }
    )+};
}

named_by!(String, &str);

impl<A: ?Sized + 'static> EventName<A> for &String {
    fn name(&self) -> &str {
        self
    }

    fn into_name(self) -> Name {
        Name::Made(Rc::new(self.as_str().into()))
    }
}

/// The name of an event in a list of listeners. A thin pointer, so that it is as small as a text.
#[doc(hidden)]
#[allow(unnameable_types, reason = "the trait has no other implementations")]
#[derive(Clone, Debug)]
pub enum Name {
    Fixed(&'static str),
    Made(Rc<Box<str>>),
}

const _: () = assert!(size_of::<Name>() == size_of::<&str>());

impl Name {
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Fixed(name) => name,
            Self::Made(name) => name,
        }
    }

    pub(super) fn to_cow(&self) -> Cow<'static, str> {
        match self {
            Self::Fixed(name) => Cow::Borrowed(name),
            Self::Made(name) => Cow::Owned(name.to_string()),
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

/// Returns the error that an emission without a listener throws.
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

/// The name of all events for monitors.
const MONITOR: &str = "Symbol(events.errorMonitor)";

#[derive(Clone, Copy, Debug, Eq)]
pub(super) struct Key<'a> {
    pub(super) name: &'a str,
    /// The type of what its listeners call, which says the type of the argument.
    pub(super) calls: TypeId,
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.is_named(other.name) && self.calls == other.calls
    }
}

impl Key<'_> {
    #[inline]
    pub(super) fn is_named(self, name: &str) -> bool {
        // Most names are one constant: the texts need not be compared.
        let is_same = || std::ptr::eq(self.name, name) || self.name == name;
        self.name.len() == name.len() && is_same()
    }

    pub(super) fn is_monitor(self) -> bool {
        self.name == MONITOR
    }

    /// Returns whether the event reports a listener that is added or removed.
    pub(super) fn is_about_listeners(self) -> bool {
        self == NEW_LISTENER.key() || self == REMOVE_LISTENER.key()
    }

    /// Returns the place of the name among those of an object in JavaScript: array indices come
    /// first, in their order, and symbols last.
    pub(super) fn rank(self) -> (u8, u32) {
        let is_index = |index: &u32| *index < u32::MAX && index.to_string() == self.name;
        let index = self.name.parse().ok().filter(is_index);
        match index {
            Some(index) => (0, index),
            None => (1 + u8::from(self.is_monitor()), 0),
        }
    }
}

/// Identifies a listener, for [`EventEmitter::off`](super::EventEmitter::off).
///
/// # Examples
///
/// ```
/// use phaseloop_node::events::{Event, EventEmitter};
///
/// const DATA: Event<u32> = Event::new("data");
///
/// fn main() {
///     let emitter = EventEmitter::new();
///     let id = emitter.on(DATA, |n| println!("{n}"));
///     assert!(emitter.off(id));
///     assert!(!emitter.off(id));
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenerId {
    pub(super) number: u64,
}

/// The number of the next listener. All emitters share one counter, so that an id is valid for its
/// own emitter only.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

impl ListenerId {
    /// Creates the id of a new listener.
    pub(super) fn new() -> Self {
        Self {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
        }
    }
}

/// A moment in the life of an emitter. It separates the listeners that were added before it from
/// those that are added later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark(NonZeroU64);

impl Mark {
    /// Returns the present moment.
    pub(crate) fn now() -> Self {
        let next = NUMBERS.load(Ordering::Relaxed);
        Self(NonZeroU64::new(next).unwrap_or(NonZeroU64::MIN))
    }

    /// Returns whether a listener was added before.
    pub(super) fn is_behind(self, number: u64) -> bool {
        number < self.0.get()
    }
}
