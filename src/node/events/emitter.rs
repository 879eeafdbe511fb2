//! What emits events, and listeners that are given it.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

use super::event::{Event, ListenerId};
use super::{EventEmitter, WeakEmitter};

/// Types that emit events: sockets, streams, servers, and types of a program's own. Brings the methods of [`EventEmitter`]
/// that one needs every day; the others are behind [`emitter`](Self::emitter).
///
/// # Examples
///
/// A class that extends `EventEmitter`:
///
/// ```
/// use phaseloop::node::events::{Emitter, Event, EventEmitter};
///
/// const OPEN: Event<str> = Event::new("open");
///
/// #[derive(Clone, Default)]
/// struct Door {
///     emitter: EventEmitter,
/// }
///
/// impl Emitter for Door {
///     fn emitter(&self) -> &EventEmitter {
///         &self.emitter
///     }
/// }
///
/// let door = Door::default();
/// door.once(OPEN, |name| println!("{name} was the first"));
/// door.emit(OPEN, "Ada");
/// assert_eq!(door.listener_count(OPEN), 0);
/// ```
pub trait Emitter {
    /// The emitter itself.
    fn emitter(&self) -> &EventEmitter;

    /// Adds a listener; see [`EventEmitter::on`].
    fn on<A: ?Sized + 'static>(
        &self,
        event: Event<A>,
        listener: impl Fn(&A) + 'static,
    ) -> ListenerId {
        self.emitter().on(event, listener)
    }

    /// Adds a listener that is called once; see [`EventEmitter::once`].
    fn once<A: ?Sized + 'static>(
        &self,
        event: Event<A>,
        listener: impl FnOnce(&A) + 'static,
    ) -> ListenerId {
        self.emitter().once(event, listener)
    }

    /// Adds a listener before the others; see [`EventEmitter::prepend`].
    fn prepend<A: ?Sized + 'static>(
        &self,
        event: Event<A>,
        listener: impl Fn(&A) + 'static,
    ) -> ListenerId {
        self.emitter().prepend(event, listener)
    }

    /// Adds a listener before the others that is called once; see [`EventEmitter::prepend_once`].
    fn prepend_once<A: ?Sized + 'static>(
        &self,
        event: Event<A>,
        listener: impl FnOnce(&A) + 'static,
    ) -> ListenerId {
        self.emitter().prepend_once(event, listener)
    }

    /// Adds a listener that is given the emitting object first, as a JavaScript function has it in `this`. Through it a
    /// listener can also [take itself off](Listening::stop_listening).
    ///
    /// The listener needs no clone of the object. It holds the object as [`weak_this`](Self::weak_this) says.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::node::events::{Emitter, Event, EventEmitter};
    ///
    /// const STEP: Event<u32> = Event::new("step");
    /// const END: Event<()> = Event::new("end");
    ///
    /// let emitter = EventEmitter::new();
    /// emitter.on_this(STEP, |this, n| {
    ///     if *n == 2 {
    ///         this.stop_listening();
    ///         this.emit(END, ());
    ///     }
    /// });
    /// assert!(emitter.emit(STEP, 1) && emitter.emit(STEP, 2));
    /// assert!(!emitter.emit(STEP, 3), "it has taken itself off");
    /// ```
    fn on_this<A: ?Sized + 'static>(
        &self,
        event: Event<A>,
        listener: impl Fn(&Listening<Self>, &A) + 'static,
    ) -> ListenerId
    where
        Self: Clone + 'static,
    {
        self.emitter().on_with(event, self.weak_this(), listener)
    }

    /// Adds a listener that is called once and is given the emitting object first; see [`on_this`](Self::on_this).
    fn once_this<A: ?Sized + 'static>(
        &self,
        event: Event<A>,
        listener: impl FnOnce(&Self, &A) + 'static,
    ) -> ListenerId
    where
        Self: Clone + 'static,
    {
        let this = self.weak_this();
        self.emitter().once(event, move |arguments| {
            if let Some(this) = this() {
                listener(&this, arguments);
            }
        })
    }

    /// The way from a listener of [`on_this`](Self::on_this) back to the object.
    ///
    /// As it stands it holds the object until the listener is taken off; streams and sockets take all listeners off when
    /// they are closed. Override it with a weak reference for a type that is let go of in another way. A listener whose
    /// object is gone is not called.
    fn weak_this(&self) -> Box<dyn Fn() -> Option<Self>>
    where
        Self: Clone + 'static,
    {
        let this = self.clone();
        Box::new(move || Some(this.clone()))
    }

    /// Takes a listener off; see [`EventEmitter::off`].
    fn off(&self, id: ListenerId) -> bool {
        self.emitter().off(id)
    }

    /// Takes all listeners of an event off; see [`EventEmitter::remove_all`].
    fn remove_all<A: ?Sized + 'static>(&self, event: Event<A>) {
        self.emitter().remove_all(event);
    }

    /// How many listeners an event has.
    fn listener_count<A: ?Sized + 'static>(&self, event: Event<A>) -> usize {
        self.emitter().listener_count(event)
    }

    /// Calls the listeners of an event; see [`EventEmitter::emit`].
    ///
    /// # Panics
    ///
    /// As [`EventEmitter::emit`].
    fn emit<A: ?Sized + 'static>(&self, event: Event<A>, arguments: impl Borrow<A>) -> bool {
        self.emitter().emit(event, arguments)
    }
}

impl Emitter for EventEmitter {
    fn emitter(&self) -> &EventEmitter {
        self
    }

    fn weak_this(&self) -> Box<dyn Fn() -> Option<Self>> {
        let this = self.downgrade();
        Box::new(move || this.upgrade())
    }
}

/// What a listener of [`on_this`](Emitter::on_this) is given: the emitting object, and itself. A clone can be kept, as a
/// clone of the object can.
#[derive(Clone)]
pub struct Listening<E> {
    pub(super) object: E,
    pub(super) emitter: EventEmitter,
    pub(super) id: ListenerId,
}

impl<E> Listening<E> {
    /// Takes the listener off that is being called. `false`: it was off already.
    pub fn stop_listening(&self) -> bool {
        self.emitter.off(self.id)
    }

    /// The name of the listener, as [`on`](Emitter::on) returns it.
    #[must_use]
    pub fn id(&self) -> ListenerId {
        self.id
    }
}

impl<E> Deref for Listening<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.object
    }
}

impl<E> fmt::Debug for Listening<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

impl EventEmitter {
    /// Adds a listener that is given what `this` leads to; see [`Emitter::on_this`].
    pub(in crate::node) fn on_with<E: 'static, A: ?Sized + 'static>(
        &self,
        event: Event<A>,
        this: Box<dyn Fn() -> Option<E>>,
        listener: impl Fn(&Listening<E>, &A) + 'static,
    ) -> ListenerId {
        let emitter: WeakEmitter = self.downgrade();
        let id = ListenerId::new(event);
        let call = move |arguments: &A| {
            if let (Some(object), Some(emitter)) = (this(), emitter.upgrade()) {
                let this = Listening {
                    object,
                    emitter,
                    id,
                };
                listener(&this, arguments);
            }
        };
        self.on_as(id, event, call);
        id
    }
}
