//! The trait of types that emit events, and listeners that get the emitting object.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;

use super::event::{EventName, ListenerId};
use super::{ERROR, EventEmitter, WeakEmitter};
use crate::error::Error;
use crate::promise::{Handled, try_call};
use phaseloop::task::next_tick;

/// Types that emit events: sockets, streams, servers, and types of the program. The trait has the
/// common methods of [`EventEmitter`]; the others are behind [`emitter`](Self::emitter).
///
/// # Examples
///
/// A class that extends `EventEmitter`:
///
/// ```
/// use phaseloop_node::events::{Emitter, Event, EventEmitter};
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
/// fn main() {
///     let door = Door::default();
///     door.once(OPEN, |name| println!("{name} was the first"));
///     door.emit(OPEN, "Ada");
///     assert_eq!(door.listener_count(OPEN), 0);
/// }
/// ```
pub trait Emitter {
    /// Returns the emitter.
    fn emitter(&self) -> &EventEmitter;

    /// Adds a listener; see [`EventEmitter::on`].
    fn on<A: ?Sized + 'static, N: EventName<A>>(
        &self,
        event: N,
        listener: impl Fn(&A) + 'static,
    ) -> ListenerId {
        self.emitter().on(event, listener)
    }

    /// Adds a listener that is called once; see [`EventEmitter::once`].
    fn once<A: ?Sized + 'static, N: EventName<A>>(
        &self,
        event: N,
        listener: impl FnOnce(&A) + 'static,
    ) -> ListenerId {
        self.emitter().once(event, listener)
    }

    /// Adds a listener before the others; see [`EventEmitter::prepend`].
    fn prepend<A: ?Sized + 'static, N: EventName<A>>(
        &self,
        event: N,
        listener: impl Fn(&A) + 'static,
    ) -> ListenerId {
        self.emitter().prepend(event, listener)
    }

    /// Adds a listener before the others that is called once; see [`EventEmitter::prepend_once`].
    fn prepend_once<A: ?Sized + 'static, N: EventName<A>>(
        &self,
        event: N,
        listener: impl FnOnce(&A) + 'static,
    ) -> ListenerId {
        self.emitter().prepend_once(event, listener)
    }

    /// Adds a listener that gets the emitting object as its first argument, like `this` in a
    /// JavaScript function. The listener can use it to [remove itself](Listening::stop_listening).
    ///
    /// The listener needs no clone of the object and does not keep it alive: its reference is
    /// [weak](WeakThis). A listener whose object was dropped is not called.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::events::{Emitter, Event, EventEmitter};
    ///
    /// const STEP: Event<u32> = Event::new("step");
    /// const END: Event<()> = Event::new("end");
    ///
    /// fn main() {
    ///     let emitter = EventEmitter::new();
    ///     emitter.on_this(STEP, |this, n| {
    ///         if *n == 2 {
    ///             this.stop_listening();
    ///             this.emit(END, ());
    ///         }
    ///     });
    ///     assert!(emitter.emit(STEP, 1) && emitter.emit(STEP, 2));
    ///     assert!(!emitter.emit(STEP, 3), "it has taken itself off");
    /// }
    /// ```
    fn on_this<A: ?Sized + 'static, N: EventName<A>>(
        &self,
        event: N,
        listener: impl Fn(&Listening<Self>, &A) + 'static,
    ) -> ListenerId
    where
        Self: WeakThis,
    {
        self.emitter().on_with(event, self.weak_this(), listener)
    }

    /// Adds a listener that is called once and gets the emitting object as its first argument; see
    /// [`on_this`](Self::on_this).
    fn once_this<A: ?Sized + 'static, N: EventName<A>>(
        &self,
        event: N,
        listener: impl FnOnce(&Self, &A) + 'static,
    ) -> ListenerId
    where
        Self: WeakThis,
    {
        let this = self.weak_this();
        self.emitter().once(event, move |arguments| {
            if let Some(this) = this() {
                listener(&this, arguments);
            }
        })
    }

    /// Adds an async listener. It starts inside the `emit`, up to its first `await`. It returns
    /// `()` or a `Result`, whose error is an unhandled rejection, or [`ERROR`] if the emitter
    /// [captures rejections](EventEmitter::capture_rejections).
    ///
    /// JavaScript: `emitter.on(name, async () => { .. })`.
    ///
    /// # Panics
    ///
    /// The emission panics when no loop runs on its thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::events::{Emitter, Event, EventEmitter};
    /// use phaseloop_node::{Exit, run, sleep};
    ///
    /// const SAVE: Event<String> = Event::new("save");
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let emitter = EventEmitter::new();
    ///         emitter.on_async(SAVE, |name| {
    ///             let name = name.clone();
    ///             async move {
    ///                 sleep(1).await.unwrap();
    ///                 println!("saved {name}");
    ///             }
    ///         });
    ///         emitter.emit(SAVE, "notes".to_owned());
    ///     })
    /// }
    /// ```
    // N152.
    fn on_async<A: ?Sized + 'static, N: EventName<A>, F>(
        &self,
        event: N,
        listener: impl Fn(&A) -> F + 'static,
    ) -> ListenerId
    where
        F: Future + 'static,
        F::Output: Handled,
    {
        let emitter = self.emitter().downgrade();
        self.on(event, move |arguments| {
            let handling = listener(arguments);
            let promise = try_call(async move { handling.await.into_result() });
            let emitter = emitter.upgrade();
            if let Some(emitter) = emitter.filter(EventEmitter::captures_rejections) {
                promise.then_result(move |result| {
                    if let Err(reason) = result {
                        next_tick(move || _ = emitter.emit(ERROR, Error::from(reason)));
                    }
                });
            }
        })
    }

    /// Removes a listener; see [`EventEmitter::off`].
    fn off(&self, id: ListenerId) -> bool {
        self.emitter().off(id)
    }

    /// Removes all listeners of an event; see [`EventEmitter::remove_all`].
    fn remove_all<A: ?Sized + 'static>(&self, event: impl EventName<A>) {
        self.emitter().remove_all(event);
    }

    /// Returns the number of listeners of an event.
    fn listener_count<A: ?Sized + 'static>(&self, event: impl EventName<A>) -> usize {
        self.emitter().listener_count(event)
    }

    /// Calls the listeners of an event; see [`EventEmitter::emit`].
    ///
    /// # Panics
    ///
    /// See [`EventEmitter::emit`].
    fn emit<A: ?Sized + 'static, N: EventName<A>>(
        &self,
        event: N,
        arguments: impl Borrow<A>,
    ) -> bool {
        self.emitter().emit(event, arguments)
    }
}

impl Emitter for EventEmitter {
    fn emitter(&self) -> &EventEmitter {
        self
    }
}

/// An object behind an `Rc` is the usual form of a JavaScript class: its listeners get the `Rc`.
impl<T: Emitter + ?Sized> Emitter for Rc<T> {
    fn emitter(&self) -> &EventEmitter {
        (**self).emitter()
    }

    fn emit<A: ?Sized + 'static, N: EventName<A>>(
        &self,
        event: N,
        arguments: impl Borrow<A>,
    ) -> bool {
        // The object may have an `emit` of its own.
        (**self).emit(event, arguments)
    }
}

/// Types with weak references, so that the listener of [`on_this`](Emitter::on_this) does not keep
/// its own object alive. An `Rc` of anything has them; [`weak_this!`](crate::weak_this) implements
/// them for a type whose clones share one state.
///
/// # Examples
///
/// ```
/// use phaseloop_node::events::{Emitter, Event, EventEmitter};
/// use std::cell::Cell;
/// use std::rc::Rc;
///
/// const OPEN: Event<()> = Event::new("open");
///
/// #[derive(Default)]
/// struct Door {
///     emitter: EventEmitter,
///     opened: Cell<u32>,
/// }
///
/// impl Emitter for Door {
///     fn emitter(&self) -> &EventEmitter {
///         &self.emitter
///     }
/// }
///
/// fn main() {
///     let door = Rc::new(Door::default());
///     door.on_this(OPEN, |door, ()| door.opened.set(door.opened.get() + 1));
///     door.emit(OPEN, ());
///     assert_eq!(door.opened.get(), 1);
///     assert_eq!(Rc::strong_count(&door), 1, "the listener does not hold it");
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a listener cannot have a weak reference to `{Self}`",
    note = "put the object into an `Rc`, or use `phaseloop_node::weak_this!({Self} {{ emitter; .. }})`"
)]
pub trait WeakThis: Sized + 'static {
    /// Returns a function that returns the object while it is alive.
    fn weak_this(&self) -> Box<dyn Fn() -> Option<Self>>;
}

impl WeakThis for EventEmitter {
    fn weak_this(&self) -> Box<dyn Fn() -> Option<Self>> {
        let this = self.downgrade();
        Box::new(move || this.upgrade())
    }
}

impl<T: ?Sized + 'static> WeakThis for Rc<T> {
    fn weak_this(&self) -> Box<dyn Fn() -> Option<Self>> {
        let this = Self::downgrade(self);
        Box::new(move || this.upgrade())
    }
}

/// Implements [`WeakThis`](crate::events::WeakThis) for a type whose clones share one state: all
/// fields are named, behind a `;` those that are cloned since they do not hold the emitter.
///
/// # Examples
///
/// ```
/// use phaseloop_node::events::{Emitter, Event, EventEmitter};
/// use std::cell::Cell;
/// use std::rc::Rc;
///
/// const OPEN: Event<()> = Event::new("open");
///
/// #[derive(Clone, Default)]
/// struct Door {
///     emitter: EventEmitter,
///     opened: Rc<Cell<u32>>,
/// }
///
/// impl Emitter for Door {
///     fn emitter(&self) -> &EventEmitter {
///         &self.emitter
///     }
/// }
///
/// fn main() {
///     phaseloop_node::weak_this!(Door { emitter; opened });
///
///     let door = Door::default();
///     door.on_this(OPEN, |door, ()| door.opened.set(door.opened.get() + 1));
///     door.emit(OPEN, ());
///     assert_eq!(door.opened.get(), 1);
/// }
/// ```
#[macro_export]
macro_rules! weak_this {
    ($name:ident $(<$($parameter:ident),+>)? { $($weak:ident),+ $(; $($kept:ident),+)? }) => {
        impl $(<$($parameter: 'static),+>)? $crate::events::WeakThis
            for $name $(<$($parameter),+>)?
        {
            fn weak_this(&self) -> Box<dyn Fn() -> Option<Self>> {
                $(let $weak = $crate::events::WeakThis::weak_this(&self.$weak);)+
                $($(let $kept = ::std::clone::Clone::clone(&self.$kept);)+)?
                Box::new(move || {
                    $(let $weak = $weak()?;)+
                    $($(let $kept = ::std::clone::Clone::clone(&$kept);)+)?
                    Some(Self { $($weak),+ $(, $($kept),+)? })
                })
            }
        }
    };
}

/// The first argument of a listener of [`on_this`](Emitter::on_this): the emitting object and the
/// listener's id. A clone can be kept, as a clone of the object can.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, events::{Event, EventEmitter}};
///
/// const DATA: Event<u32> = Event::new("data");
///
/// fn main() {
///     let emitter = EventEmitter::new();
///     emitter.on_this(DATA, |this, _| {
///         assert!(this.stop_listening());
///     });
///     emitter.emit(DATA, 1);
///     assert_eq!(emitter.listener_count(DATA), 0);
/// }
/// ```
#[derive(Clone)]
pub struct Listening<E> {
    pub(super) object: E,
    pub(super) emitter: EventEmitter,
    pub(super) id: ListenerId,
}

impl<E> Listening<E> {
    /// Removes the listener that is being called. Returns `false` if it was already removed.
    pub fn stop_listening(&self) -> bool {
        self.emitter.off(self.id)
    }

    /// Returns the id of the listener, as [`on`](Emitter::on) does.
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
    /// Adds a listener that gets the object behind `this`; see [`Emitter::on_this`].
    pub(crate) fn on_with<E: 'static, A: ?Sized + 'static, N: EventName<A>>(
        &self,
        event: N,
        this: Box<dyn Fn() -> Option<E>>,
        listener: impl Fn(&Listening<E>, &A) + 'static,
    ) -> ListenerId {
        let emitter: WeakEmitter = self.downgrade();
        let id = ListenerId::new();
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
