//! `EventEmitter`: listeners that are called by name, in order, at once.
//!
//! An event is a constant of type [`Event`], which holds its name and says what its listeners are given:
//!
//! ```
//! use phaseloop::node::events::{Event, EventEmitter};
//!
//! const GREETING: Event<str> = Event::new("greeting");
//!
//! let emitter = EventEmitter::new();
//! emitter.on(GREETING, |name| println!("hello, {name}"));
//! assert!(emitter.emit(GREETING, "world"));
//! ```
//!
//! | Node | here |
//! |---|---|
//! | `on`, `once`, `prependListener`, `prependOnceListener` | [`on`](EventEmitter::on), [`once`](EventEmitter::once), [`prepend`](EventEmitter::prepend), [`prepend_once`](EventEmitter::prepend_once) |
//! | `off(name, listener)` | [`off`](EventEmitter::off) with the [`ListenerId`] that `on` has returned: closures have no identity |
//! | `on(name, function () { this… })` | [`on_this`](Emitter::on_this), whose listener can also take itself off |
//! | `class X extends EventEmitter` | [`Emitter`] |
//! | `emit(name, a, b)` | [`emit`](EventEmitter::emit): several arguments are a tuple or a struct |
//! | `'error'` without a listener throws | `emit` [throws](super::throw) that error, [`try_emit`](EventEmitter::try_emit) returns it |
//! | `events.errorMonitor` | [`Event::monitor`] |
//! | `'newListener'`, `'removeListener'` | [`NEW_LISTENER`], [`REMOVE_LISTENER`] |
//! | `await once(emitter, name)` | [`once()`] |
//! | `for await (… of on(emitter, name))` | [`on()`] |
//! | `MaxListenersExceededWarning` | a [warning](super::process::on_warning) of the same name; on standard error where no loop runs |
//!
//! Listeners are `Fn`, not `FnMut`: one that emits its own event is entered again while it runs. What it changes belongs
//! in a `Cell` or `RefCell`.

mod awaited;
mod emitter;
mod event;
mod listeners;
mod open;

use std::borrow::Borrow;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::{Rc, Weak};

pub use self::awaited::{Events, Once, on, on_with_signal, once, once_with_signal};
pub use self::emitter::{Emitter, Listening};
use self::event::Key;
pub use self::event::{Event, ListenerId};
use self::listeners::{Calls, Listener, Listeners, Slot};
pub(super) use self::open::OpenEmitters;
use super::error::Error;
use super::process;
use super::reason::Reason;
use crate::event_loop::api::loop_handle::LoopHandle;
use crate::raw::nesting::drop_flat;

/// Emitted with an event's name before a listener is added to it.
pub const NEW_LISTENER: Event<str> = Event::new("newListener");

/// Emitted with an event's name after a listener was taken off it.
pub const REMOVE_LISTENER: Event<str> = Event::new("removeListener");

/// Something failed. Without a listener, emitting it panics; see [`EventEmitter::emit`].
pub const ERROR: Event<Error> = Event::error();

/// How many listeners an event may have before the emitter warns, unless told otherwise.
pub const DEFAULT_MAX_LISTENERS: usize = 10;

/// What a type that emits does when listeners come and go: a readable stream begins to flow.
pub(super) trait Watch {
    /// A listener was added by `on` or `once`.
    fn added(&self, name: &'static str);
    /// A listener was removed.
    fn removed(&self, name: &'static str);
}

#[derive(Default)]
struct Inner {
    slots: RefCell<Vec<Slot>>,
    max_listeners: Cell<Option<usize>>,
    watch: RefCell<Option<Weak<dyn Watch>>>,
    /// The name of what emits, for warnings; empty for a plain emitter.
    class: Cell<&'static str>,
}

/// A listener may hold another emitter, and so on.
impl Drop for Inner {
    fn drop(&mut self) {
        let slots = self.slots.take();
        if !slots.is_empty() {
            drop_flat(slots);
        }
    }
}

/// Calls listeners by event, in the order in which they were added, inside [`emit`](Self::emit).
///
/// A clone is the same emitter. A listener that holds a clone of its emitter keeps it for ever; give it a
/// [`WeakEmitter`] instead.
///
/// # Examples
///
/// ```
/// use std::{cell::RefCell, rc::Rc};
/// use phaseloop::node::events::{Event, EventEmitter};
///
/// const DATA: Event<u32> = Event::new("data");
///
/// let emitter = EventEmitter::new();
/// let seen = Rc::new(RefCell::new(Vec::new()));
/// let (first, second) = (seen.clone(), seen.clone());
/// let id = emitter.on(DATA, move |n| first.borrow_mut().push(*n));
/// emitter.once(DATA, move |n| second.borrow_mut().push(n * 10));
/// assert!(emitter.emit(DATA, &1));
/// assert!(emitter.emit(DATA, &2));
/// emitter.off(id);
/// assert!(!emitter.emit(DATA, &3), "nobody listens any more");
/// assert_eq!(*seen.borrow(), [1, 10, 2]);
/// ```
#[derive(Clone, Default)]
pub struct EventEmitter {
    inner: Rc<Inner>,
}

impl EventEmitter {
    /// An emitter without listeners.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An emitter of a class of its own: what Node's `class Name extends EventEmitter` is. Warnings say the name.
    #[must_use]
    pub fn of_class(name: &'static str) -> Self {
        let emitter = Self::default();
        emitter.inner.class.set(name);
        emitter
    }

    /// Sets the name of [`of_class`](Self::of_class).
    pub(super) fn set_class(&self, name: &'static str) {
        self.inner.class.set(name);
    }

    /// A way to the emitter that does not keep it.
    #[must_use]
    pub fn downgrade(&self) -> WeakEmitter {
        WeakEmitter {
            inner: Rc::downgrade(&self.inner),
        }
    }

    /// Has `watch` told of every listener that comes or goes.
    pub(super) fn watched_by(&self, watch: Weak<dyn Watch>) {
        *self.inner.watch.borrow_mut() = Some(watch);
    }

    // Listeners.

    /// Adds a listener behind the others (N110). [`NEW_LISTENER`] is emitted first.
    pub fn on<A: ?Sized + 'static>(
        &self,
        event: Event<A>,
        listener: impl Fn(&A) + 'static,
    ) -> ListenerId {
        self.on_as(ListenerId::new(event), event, listener)
    }

    /// Adds a listener under a name it may know.
    fn on_as<A: ?Sized + 'static>(
        &self,
        id: ListenerId,
        event: Event<A>,
        listener: impl Fn(&A) + 'static,
    ) -> ListenerId {
        self.add(id, event, Calls::Always(Box::new(listener)), false);
        self.tell(|watch| watch.added(event.name));
        id
    }

    /// Adds a listener that is called once: it is off the emitter before it is called (N111).
    pub fn once<A: ?Sized + 'static>(
        &self,
        event: Event<A>,
        listener: impl FnOnce(&A) + 'static,
    ) -> ListenerId {
        let id = ListenerId::new(event);
        self.add(id, event, Calls::once(listener), false);
        self.tell(|watch| watch.added(event.name));
        id
    }

    /// Adds a listener before the others (N112).
    pub fn prepend<A: ?Sized + 'static>(
        &self,
        event: Event<A>,
        listener: impl Fn(&A) + 'static,
    ) -> ListenerId {
        let id = ListenerId::new(event);
        self.add(id, event, Calls::Always(Box::new(listener)), true);
        id
    }

    /// Adds a listener before the others that is called once.
    pub fn prepend_once<A: ?Sized + 'static>(
        &self,
        event: Event<A>,
        listener: impl FnOnce(&A) + 'static,
    ) -> ListenerId {
        let id = ListenerId::new(event);
        self.add(id, event, Calls::once(listener), true);
        id
    }

    fn add<A: ?Sized + 'static>(
        &self,
        id: ListenerId,
        event: Event<A>,
        calls: Calls<A>,
        first: bool,
    ) {
        let key = event.key();
        if self.listener_count(NEW_LISTENER) > 0 {
            self.emit(NEW_LISTENER, key.name);
        }
        let listener = Rc::new(Listener {
            number: id.number,
            calls,
        });
        let too_many = {
            let mut slots = self.inner.slots.borrow_mut();
            let known = slots.iter().position(|slot| slot.key == key);
            let place = known.unwrap_or(slots.len());
            if known.is_none() {
                slots.push(Slot {
                    key,
                    listeners: Box::new(Listeners::<A>::default()),
                    warned: false,
                });
            }
            let slot = &mut slots[place];
            let listeners = slot.listeners.as_any_mut().downcast_mut::<Listeners<A>>();
            let listeners = Rc::make_mut(listeners.expect("the key names the type"));
            let at = if first { 0 } else { listeners.len() };
            listeners.insert(at, listener);
            let count = listeners.len();
            let limit = self.max_listeners();
            let too_many = limit > 0 && count > limit && !slot.warned;
            slot.warned |= too_many;
            too_many.then_some(count)
        };
        if let Some(count) = too_many {
            self.warn(key.name, count);
        }
    }

    /// Takes a listener off. [`REMOVE_LISTENER`] is emitted afterwards (N115). An emit that runs still calls it (N113).
    /// `false`: it was gone already, or is one of another emitter.
    pub fn off(&self, id: ListenerId) -> bool {
        let removed = {
            let mut slots = self.inner.slots.borrow_mut();
            let place = slots.iter().position(|slot| slot.key == id.key);
            place.and_then(|place| {
                let removed = slots[place].listeners.remove(id.number);
                match slots[place].listeners.len() {
                    0 => drop(slots.remove(place)),
                    // Node forgets with the list that it has warned.
                    1 => slots[place].warned = false,
                    _ => {}
                }
                removed
            })
        };
        let was_there = removed.is_some();
        if was_there {
            if self.listener_count(REMOVE_LISTENER) > 0 {
                self.emit(REMOVE_LISTENER, id.key.name);
            }
            self.tell(|watch| watch.removed(id.key.name));
        }
        // Last: the drop of a closure may be anybody's code.
        drop(removed);
        was_there
    }

    /// Takes all listeners of an event off, the last one first.
    pub fn remove_all<A: ?Sized + 'static>(&self, event: Event<A>) {
        self.remove_key(event.key());
    }

    /// Takes all listeners of all events off; those of [`REMOVE_LISTENER`] last, so that they see the others go.
    pub fn remove_all_events(&self) {
        loop {
            let next = {
                let slots = self.inner.slots.borrow();
                let mut others = slots.iter().map(|slot| slot.key);
                let other = others.find(|key| *key != REMOVE_LISTENER.key());
                other.or_else(|| slots.first().map(|slot| slot.key))
            };
            match next {
                Some(key) => self.remove_key(key),
                None => return,
            }
        }
    }

    /// Drops all listeners without telling anybody: nothing will be emitted any more.
    pub(super) fn clear(&self) {
        let slots = self.inner.slots.take();
        drop(slots);
    }

    fn remove_key(&self, key: Key) {
        loop {
            let last = {
                let slots = self.inner.slots.borrow();
                let slot = slots.iter().find(|slot| slot.key == key);
                slot.and_then(|slot| slot.listeners.last())
            };
            match last {
                Some(number) => self.off(ListenerId { key, number }),
                None => return,
            };
        }
    }

    /// How many listeners an event has.
    #[must_use]
    pub fn listener_count<A: ?Sized + 'static>(&self, event: Event<A>) -> usize {
        let slots = self.inner.slots.borrow();
        let slot = slots.iter().find(|slot| slot.key == event.key());
        slot.map_or(0, |slot| slot.listeners.len())
    }

    /// The events that have listeners, in the order in which they got their first one; [monitors](Event::monitor) last, as
    /// their name is a symbol in Node.
    #[must_use]
    pub fn event_names(&self) -> Vec<&'static str> {
        let slots = self.inner.slots.borrow();
        let mut keys: Vec<_> = slots.iter().map(|slot| slot.key).collect();
        keys.sort_by_key(|key| key.is_monitor);
        keys.into_iter().map(|key| key.name).collect()
    }

    // Emitting.

    /// Calls the listeners of an event, one after the other, inside this call; no lane is drained between them (N10).
    /// `false`: there were none. The arguments are a value or a reference: `emit(DATA, 7)`, `emit(DATA, &7)`.
    ///
    /// The listeners are those of this moment: one that is added meanwhile waits for the next emit, one that is removed
    /// meanwhile is called (N113).
    ///
    /// # Panics
    ///
    /// With the panic of a listener; the listeners after it are not called (N114). [`ERROR`], and other events made by
    /// [`Event::error`], [throw](super::throw) the error itself when there is no listener.
    #[track_caller]
    pub fn emit<A: ?Sized + 'static>(&self, event: Event<A>, arguments: impl Borrow<A>) -> bool {
        match self.try_emit(event, arguments) {
            Ok(heard) => heard,
            Err(unheard) => unheard.reason.raise(),
        }
    }

    /// The same, for those who take an unheard error as a value.
    ///
    /// # Errors
    ///
    /// When the event is an [error](Event::error) that nobody listens to. [Monitors](Event::monitor) were called.
    ///
    /// # Panics
    ///
    /// With the panic of a listener.
    pub fn try_emit<A: ?Sized + 'static>(
        &self,
        event: Event<A>,
        arguments: impl Borrow<A>,
    ) -> Result<bool, UnheardError> {
        let arguments = arguments.borrow();
        let Some(unheard) = event.unheard else {
            return Ok(self.call_all(event, arguments));
        };
        self.call_all(event.monitor(), arguments);
        if self.call_all(event, arguments) {
            return Ok(true);
        }
        Err(UnheardError {
            reason: unheard(arguments),
        })
    }

    fn call_all<A: ?Sized + 'static>(&self, event: Event<A>, arguments: &A) -> bool {
        let Some(listeners) = self.snapshot(event) else {
            return false;
        };
        for listener in listeners.iter() {
            match &listener.calls {
                Calls::Always(call) => call(arguments),
                Calls::Once(call) => {
                    // A nested emit may have been first.
                    let Some(call) = call.take() else { continue };
                    self.off(ListenerId {
                        key: event.key(),
                        number: listener.number,
                    });
                    call(arguments);
                }
            }
        }
        true
    }

    fn snapshot<A: ?Sized + 'static>(&self, event: Event<A>) -> Option<Listeners<A>> {
        let slots = self.inner.slots.borrow();
        let slot = slots.iter().find(|slot| slot.key == event.key())?;
        slot.listeners.as_any().downcast_ref().cloned()
    }

    // The limit.

    /// How many listeners an event may have before the emitter warns; 0 stands for any number.
    #[must_use]
    pub fn max_listeners(&self) -> usize {
        self.inner
            .max_listeners
            .get()
            .unwrap_or(DEFAULT_MAX_LISTENERS)
    }

    /// Sets [`max_listeners`](Self::max_listeners).
    pub fn set_max_listeners(&self, limit: usize) {
        self.inner.max_listeners.set(Some(limit));
    }

    /// An event has more listeners than it should.
    fn warn(&self, event: &'static str, count: usize) {
        let class = match self.inner.class.get() {
            "" => "EventEmitter",
            class => class,
        };
        let text = format!(
            "Possible EventEmitter memory leak detected. {count} {event} listeners added to [{class}]. MaxListeners is {}. \
             Use emitter.setMaxListeners() to increase limit",
            self.max_listeners()
        );
        if LoopHandle::try_current().is_some() {
            process::emit_warning("MaxListenersExceededWarning", text);
        } else {
            eprintln!("phaseloop: MaxListenersExceededWarning: {text}");
        }
    }

    fn tell(&self, news: impl FnOnce(&dyn Watch)) {
        let watch = self.inner.watch.borrow().as_ref().and_then(Weak::upgrade);
        if let Some(watch) = watch {
            news(&*watch);
        }
    }
}

impl fmt::Debug for EventEmitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots = self.inner.slots.borrow();
        let counts = slots
            .iter()
            .map(|slot| (slot.key.name, slot.listeners.len()));
        f.debug_map().entries(counts).finish()
    }
}

/// An [`EventEmitter`] that is not kept alive.
#[derive(Clone)]
pub struct WeakEmitter {
    inner: Weak<Inner>,
}

impl WeakEmitter {
    /// The emitter, if there still is one.
    #[must_use]
    pub fn upgrade(&self) -> Option<EventEmitter> {
        self.inner.upgrade().map(|inner| EventEmitter { inner })
    }
}

impl fmt::Debug for WeakEmitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakEmitter")
    }
}

/// An error was emitted, and there was no listener for it.
#[derive(Clone, Debug)]
pub struct UnheardError {
    reason: Reason,
}

impl UnheardError {
    /// What [`emit`](EventEmitter::emit) would have thrown: the error itself.
    #[must_use]
    pub fn reason(&self) -> &Reason {
        &self.reason
    }

    /// The error's own text.
    #[must_use]
    pub fn message(&self) -> String {
        self.reason.to_string()
    }
}

/// Errors with the same text are equal.
impl PartialEq for UnheardError {
    fn eq(&self, other: &Self) -> bool {
        self.message() == other.message()
    }
}

impl Eq for UnheardError {}

impl fmt::Display for UnheardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.reason.fmt(f)
    }
}

impl std::error::Error for UnheardError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.reason.error()
    }
}
