//! Node's `EventEmitter`: listeners that are called synchronously, in order, by the name of an
//! event.
//!
//! An event is a constant of type [`Event`]. It holds the name and the type of the argument of its
//! listeners:
//!
//! ```
//! use phaseloop_node::events::{Event, EventEmitter};
//!
//! const GREETING: Event<str> = Event::new("greeting");
//!
//! fn main() {
//!     let emitter = EventEmitter::new();
//!     emitter.on(GREETING, |name| println!("hello, {name}"));
//!     assert!(emitter.emit(GREETING, "world"));
//! }
//! ```
//!
//! | Node | here |
//! |---|---|
//! | `on`, `once` | [`on`](EventEmitter::on), [`once`](EventEmitter::once) |
//! | `prependListener` | [`prepend`](EventEmitter::prepend) |
//! | `prependOnceListener` | [`prepend_once`](EventEmitter::prepend_once) |
//! | `off(name, listener)` | [`off`](EventEmitter::off) with the [`ListenerId`] of `on` |
//! | `on(name, function () { this… })` | [`on_this`](Emitter::on_this) |
//! | `class X extends EventEmitter` | [`Emitter`] |
//! | `emit(name, a, b)` | [`emit`](EventEmitter::emit) with a tuple or a struct |
//! | `'error'` without a listener throws | `emit` [throws](super::throw) the error |
//! | | [`try_emit`](EventEmitter::try_emit) returns the error |
//! | `events.errorMonitor` | [`Event::monitor`] |
//! | `'newListener'`, `'removeListener'` | [`NEW_LISTENER`], [`REMOVE_LISTENER`] |
//! | `await once(emitter, name)` | [`once()`] |
//! | `for await (… of on(emitter, name))` | [`on()`] |
//! | `on(topic, ..)`, a name made at run time | [`on`](EventEmitter::on) with a `String` |
//! | `listeners(name)` | [`listeners`](EventEmitter::listeners) |
//! | `rawListeners(name)` | [`raw_listeners`](EventEmitter::raw_listeners) |
//! | `on(name, async () => { .. })` | [`on_async`](Emitter::on_async) |
//! | `captureRejections: true` | [`capture_rejections`](EventEmitter::capture_rejections) |
//! | `MaxListenersExceededWarning` | a [warning](super::process::on_warning) of the same name |
//!
//! A listener is removed by its [`ListenerId`], because closures have no identity. On a thread
//! without a loop, warnings are written to standard error.
//!
//! Listeners are `Fn`, not `FnMut`: a listener that emits its own event is called again while it
//! runs. Mutable state belongs in a `Cell` or `RefCell`.

mod awaited;
mod emitter;
mod event;
mod iterate;
mod limits;
mod listeners;
mod observe;
mod open;
mod resource;
mod unheard;
mod views;
mod weak;

use std::any::Any;
use std::borrow::{Borrow, Cow};
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::rc::{Rc, Weak};

pub use self::awaited::{Once, once, once_with_signal};
pub use self::emitter::{Emitter, Listening, WeakThis};
pub(super) use self::event::Mark;
pub use self::event::{Event, EventName, ListenerId};
use self::event::{Key, Name, key_of};
pub(super) use self::iterate::EventQueue;
pub use self::iterate::{Events, on, on_with_signal};
use self::limits::Limits;
pub(super) use self::listeners::Observer;
use self::listeners::{Calls, Entry, Listeners, MonitorCalls, Target, listen_for_error};
pub(super) use self::open::OpenEmitters;
pub use self::resource::EventEmitterAsyncResource;
pub use self::unheard::UnheardError;
pub use self::views::Listener;
pub use self::weak::WeakEmitter;
use super::error::Error;
use phaseloop::extension::drop_flat;

/// Emitted with the name of an event before a listener is added to it. JavaScript: `'newListener'`.
pub const NEW_LISTENER: Event<str> = Event::new("newListener");

/// Emitted with the name of an event after a listener was removed from it. JavaScript:
/// `'removeListener'`.
pub const REMOVE_LISTENER: Event<str> = Event::new("removeListener");

/// An error has occurred. Without a listener, emitting it panics; see [`EventEmitter::emit`].
/// JavaScript: `'error'`.
pub const ERROR: Event<Error> = Event::error();

/// The default limit of listeners of an event, above which the emitter warns. JavaScript:
/// `events.defaultMaxListeners`.
pub const DEFAULT_MAX_LISTENERS: usize = 10;

/// Notifies the owner of an emitter of added and removed listeners: a readable stream starts to
/// flow.
pub(super) trait Watch {
    /// Called after `on` or `once` has added a listener.
    fn added(&self, name: &str);
    /// Called after a listener was removed.
    fn removed(&self, name: &str);
}

#[derive(Default)]
struct Inner {
    listeners: RefCell<Listeners>,
    /// What few emitters have.
    limits: OnceCell<Box<Limits>>,
    watch: RefCell<Option<Weak<dyn Watch>>>,
    /// The class name of the emitter, for warnings; empty for a plain emitter.
    class: Cell<&'static str>,
}

/// A listener may hold another emitter, and so on: the drop is flat, so that a long chain does not
/// overflow the stack.
impl Drop for Inner {
    fn drop(&mut self) {
        let listeners = self.listeners.take();
        if !listeners.is_empty() {
            drop_flat(listeners);
        }
    }
}

/// Calls the listeners of an event in the order in which they were added, inside
/// [`emit`](Self::emit). JavaScript: `EventEmitter`.
///
/// A clone is a handle to the same emitter. A listener that holds a clone of its emitter is a
/// reference cycle, which is never freed; give it a [`WeakEmitter`] instead.
///
/// # Examples
///
/// ```
/// use std::{cell::RefCell, rc::Rc};
/// use phaseloop_node::events::{Event, EventEmitter};
///
/// const DATA: Event<u32> = Event::new("data");
///
/// fn main() {
///     let emitter = EventEmitter::new();
///     let seen = Rc::new(RefCell::new(Vec::new()));
///     let (first, second) = (seen.clone(), seen.clone());
///     let id = emitter.on(DATA, move |n| first.borrow_mut().push(*n));
///     emitter.once(DATA, move |n| second.borrow_mut().push(n * 10));
///     assert!(emitter.emit(DATA, &1));
///     assert!(emitter.emit(DATA, &2));
///     emitter.off(id);
///     assert!(!emitter.emit(DATA, &3), "no listener is left");
///     assert_eq!(*seen.borrow(), [1, 10, 2]);
/// }
/// ```
#[derive(Clone, Default)]
pub struct EventEmitter {
    inner: Rc<Inner>,
}

impl EventEmitter {
    /// Creates an emitter without listeners.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an emitter with a class name, as `class Name extends EventEmitter` does in Node.
    /// Warnings contain the name.
    #[must_use]
    pub fn of_class(name: &'static str) -> Self {
        let emitter = Self::default();
        emitter.inner.class.set(name);
        emitter
    }

    /// Sets the class name; see [`of_class`](Self::of_class).
    pub(super) fn set_class(&self, name: &'static str) {
        self.inner.class.set(name);
    }

    /// Returns a weak reference to the emitter.
    #[must_use]
    pub fn downgrade(&self) -> WeakEmitter {
        WeakEmitter {
            inner: Rc::downgrade(&self.inner),
        }
    }

    /// Calls `watch` for every listener that is added or removed.
    pub(super) fn watched_by(&self, watch: Weak<dyn Watch>) {
        *self.inner.watch.borrow_mut() = Some(watch);
    }

    /// Returns whether no listener was added and none can be: there is one handle.
    pub(super) fn is_untouched(&self) -> bool {
        let Inner {
            listeners,
            limits,
            watch: _,
            class: _,
        } = &*self.inner;
        Rc::strong_count(&self.inner) == 1
            && Rc::weak_count(&self.inner) == 0
            && listeners.borrow().is_empty()
            && limits.get().is_none()
    }

    // Listeners.

    /// Adds a listener after the others. [`NEW_LISTENER`] is emitted first. JavaScript:
    /// `emitter.on(name, listener)`.
    // N110.
    pub fn on<A: ?Sized + 'static, N: EventName<A>>(
        &self,
        event: N,
        listener: impl Fn(&A) + 'static,
    ) -> ListenerId {
        self.on_as(ListenerId::new(), event, listener)
    }

    /// Adds a listener under an id that the listener may know.
    fn on_as<A: ?Sized + 'static, N: EventName<A>>(
        &self,
        id: ListenerId,
        event: N,
        listener: impl Fn(&A) + 'static,
    ) -> ListenerId {
        self.add(id, event, Calls::always(listener), false, true);
        id
    }

    /// Adds a listener that is called once: it is removed before it is called. JavaScript:
    /// `emitter.once(name, listener)`.
    // N111.
    pub fn once<A: ?Sized + 'static, N: EventName<A>>(
        &self,
        event: N,
        listener: impl FnOnce(&A) + 'static,
    ) -> ListenerId {
        let id = ListenerId::new();
        self.add(id, event, Calls::once(listener), false, true);
        id
    }

    /// Adds a listener before the others. JavaScript: `emitter.prependListener(name, listener)`.
    // N112.
    pub fn prepend<A: ?Sized + 'static, N: EventName<A>>(
        &self,
        event: N,
        listener: impl Fn(&A) + 'static,
    ) -> ListenerId {
        let id = ListenerId::new();
        self.add(id, event, Calls::always(listener), true, false);
        id
    }

    /// Adds a listener before the others that is called once. JavaScript:
    /// `emitter.prependOnceListener(name, listener)`.
    pub fn prepend_once<A: ?Sized + 'static, N: EventName<A>>(
        &self,
        event: N,
        listener: impl FnOnce(&A) + 'static,
    ) -> ListenerId {
        let id = ListenerId::new();
        self.add(id, event, Calls::once(listener), true, false);
        id
    }

    /// Adds a listener before or behind the others, and notifies the owner if it `is_watched`.
    fn add<A: ?Sized + 'static>(
        &self,
        id: ListenerId,
        event: impl EventName<A>,
        calls: Calls<A>,
        first: bool,
        is_watched: bool,
    ) {
        let calls: Rc<dyn Any> = match event.is_monitor() {
            true => Rc::new(MonitorCalls(calls)),
            false => Rc::new(calls),
        };
        let name = event.into_name();
        self.insert(id, name.clone(), Target::Closure(calls), first);
        if is_watched {
            self.notify(|watch| watch.added(name.as_str()));
        }
    }

    fn insert(&self, id: ListenerId, name: Name, target: Target, first: bool) {
        // Emitted before the insertion, so that a listener of 'newListener' does not see itself.
        if self.inner.listeners.borrow().was_watched() {
            self.emit(NEW_LISTENER, name.as_str());
        }
        let calls = target.calls();
        let entry = Entry::new(id, name.clone(), target);
        let count = self.inner.listeners.borrow_mut().insert(entry, first);
        let limit = self.max_listeners();
        if limit > 0 && count > limit {
            self.warn_once((name, calls), count);
        }
    }

    /// Removes a listener. [`REMOVE_LISTENER`] is emitted afterwards. A running emit still calls
    /// the listener. Returns `false` if the listener was already removed, or belongs to another
    /// emitter. JavaScript: `emitter.off(name, listener)`.
    // N113, N115.
    pub fn off(&self, id: ListenerId) -> bool {
        let removed = self.inner.listeners.borrow_mut().remove(id);
        let was_there = removed.is_some();
        if let Some(entry) = &removed {
            let key = entry.key();
            if let Some(limits) = self.inner.limits.get() {
                // Node stores a single listener without a list, and loses the flag with the list.
                if self.inner.listeners.borrow().count(key) < 2 {
                    limits.forget(key);
                }
            }
            if self.inner.listeners.borrow().was_watched() {
                self.emit(REMOVE_LISTENER, key.name);
            }
            self.notify(|watch| watch.removed(key.name));
        }
        // Dropped last, without a borrow: the drop of a closure may run user code.
        drop(removed);
        was_there
    }

    /// Removes all listeners of an event, the last one first. JavaScript:
    /// `emitter.removeAllListeners(name)`.
    pub fn remove_all<A: ?Sized + 'static>(&self, event: impl EventName<A>) {
        self.remove_key(key_of(&event));
    }

    /// Removes all listeners of all events, in the order of [`event_names`](Self::event_names).
    /// Those of [`REMOVE_LISTENER`] are removed last, so that they see the other removals. A
    /// listener that one of them adds meanwhile is dropped. JavaScript:
    /// `emitter.removeAllListeners()`.
    pub fn remove_all_events(&self) {
        let all = self.inner.listeners.borrow();
        let events = all.events().into_iter();
        let others = events.filter(|entry| entry.key() != REMOVE_LISTENER.key());
        let ids: Vec<_> = others.map(|entry| all.ids(entry.key())).collect();
        drop(all);
        for id in ids.into_iter().flat_map(|ids| ids.into_iter().rev()) {
            self.off(id);
        }
        self.remove_key(REMOVE_LISTENER.key());
        self.clear();
    }

    /// Drops all listeners without an event: the owner emits nothing any more.
    pub(super) fn clear(&self) {
        let listeners = self.inner.listeners.take();
        drop(listeners);
    }

    /// Drops the listeners that were added before `mark`, without an event: the owner is closed.
    /// They may hold the owner. The events named by `kept` keep theirs.
    pub(super) fn drop_before(&self, mark: Mark, kept: &[&str]) {
        let dropped = self.inner.listeners.borrow_mut().drop_before(mark, kept);
        drop(dropped);
    }

    /// Emits the last event of the owner, and drops the listeners that were there before it, also
    /// if one of them panics. Those that are added meanwhile stay.
    pub(super) fn emit_last(&self, event: Event<()>) {
        self.end_with(|| {
            self.emit(event, ());
        });
    }

    /// Calls `emit`, which emits the last events of the owner, as [`emit_last`](Self::emit_last).
    pub(super) fn end_with(&self, emit: impl FnOnce()) {
        struct Last<'a>(&'a EventEmitter, Mark);
        impl Drop for Last<'_> {
            fn drop(&mut self) {
                self.0.drop_before(self.1, &[]);
            }
        }
        let _last = Last(self, Mark::now());
        emit();
    }

    /// Removes the listeners that an event has now, the last one first. A listener of
    /// 'removeListener' may add others.
    fn remove_key(&self, key: Key<'_>) {
        let ids = self.inner.listeners.borrow().ids(key);
        for id in ids.into_iter().rev() {
            self.off(id);
        }
    }

    /// Returns the number of listeners of an event. JavaScript: `emitter.listenerCount(name)`.
    #[must_use]
    pub fn listener_count<A: ?Sized + 'static>(&self, event: impl EventName<A>) -> usize {
        self.inner.listeners.borrow().count(key_of(&event))
    }

    /// Returns the names of the events with listeners, in the order of their first listeners.
    /// [Monitors](Event::monitor) come last, as their name is a symbol in Node, and names that are
    /// array indices come first, as in every object of JavaScript. JavaScript:
    /// `emitter.eventNames()`.
    #[must_use]
    pub fn event_names(&self) -> Vec<Cow<'static, str>> {
        let listeners = self.inner.listeners.borrow();
        let events = listeners.events().into_iter();
        events.map(|entry| entry.name.to_cow()).collect()
    }

    /// Returns whether both are handles to one emitter.
    #[cfg(all(unix, feature = "tty"))]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.inner, &other.inner)
    }

    // Emitting.

    /// Calls the listeners of an event, one after the other, inside this call. The lanes are not
    /// drained between them. Returns `false` if there were none. The argument is a value or a
    /// reference: `emit(DATA, 7)`, `emit(DATA, &7)`. JavaScript: `emitter.emit(name, ..)`.
    ///
    /// The list of listeners is fixed when the call starts: a listener added meanwhile is called by
    /// the next emit, and a listener removed meanwhile is still called.
    ///
    /// # Panics
    ///
    /// With the panic of a listener; the listeners after it are not called. [`ERROR`], and other
    /// events created by [`Event::error`], [throw](super::throw) the error itself if there is no
    /// listener.
    // N10, N113, N114.
    #[track_caller]
    pub fn emit<A: ?Sized + 'static, N: EventName<A>>(
        &self,
        event: N,
        arguments: impl Borrow<A>,
    ) -> bool {
        match self.try_emit(event, arguments) {
            Ok(value) => value,
            Err(unheard) => unheard.reason.raise(),
        }
    }

    /// Emits an event like [`emit`](Self::emit), but returns an unhandled error in place of
    /// throwing it.
    ///
    /// # Errors
    ///
    /// If the event is an [error](Event::error) without a listener. [Monitors](Event::monitor) were
    /// called.
    ///
    /// # Panics
    ///
    /// With the panic of a listener.
    pub fn try_emit<A: ?Sized + 'static, N: EventName<A>>(
        &self,
        event: N,
        arguments: impl Borrow<A>,
    ) -> Result<bool, UnheardError> {
        let arguments = arguments.borrow();
        let Some(unheard) = event.unheard() else {
            return Ok(self.call_all(&event, arguments));
        };
        self.call_all(&Event::<A>::new("").monitor(), arguments);
        if self.call_all(&event, arguments) {
            return Ok(true);
        }
        if self.inner.listeners.borrow().has_dropped_error_listener() {
            // The owner is closed, and has dropped the listener with the others.
            return Ok(false);
        }
        Err(UnheardError {
            reason: unheard(arguments),
        })
    }

    fn call_all<A: ?Sized + 'static>(&self, event: &impl EventName<A>, arguments: &A) -> bool {
        // Most emitters of a message have no listeners.
        if self.inner.listeners.borrow().is_empty() {
            return false;
        }
        let key = key_of(event);
        let listeners = self.inner.listeners.borrow().snapshot(key);
        if listeners.is_empty() {
            return false;
        }
        for (number, target) in listeners.iter() {
            let calls = match target {
                Target::Observer(observer, token) => {
                    observer.clone().notify(*token);
                    continue;
                }
                Target::ErrorObserver(observer, _) => {
                    listen_for_error(observer, arguments);
                    continue;
                }
                Target::Closure(calls) => calls,
            };
            let calls = match event.is_monitor() {
                true => calls.downcast_ref().map(|MonitorCalls(calls)| calls),
                false => calls.downcast_ref::<Calls<A>>(),
            };
            match calls.expect("the key contains the argument type") {
                Calls::Always(call) => call(arguments),
                Calls::Once(call) => {
                    // A nested emit may have called it first.
                    let Some(call) = call.take() else { continue };
                    // Removed before the call, so that an emit inside the call does not count it.
                    self.off(ListenerId { number: *number });
                    call(arguments);
                }
            }
        }
        true
    }

    fn notify(&self, news: impl FnOnce(&dyn Watch)) {
        let watch = self.inner.watch.borrow().as_ref().and_then(Weak::upgrade);
        if let Some(watch) = watch {
            news(&*watch);
        }
    }
}

impl fmt::Debug for EventEmitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listeners = self.inner.listeners.borrow();
        let events = listeners.events().into_iter();
        let counts = events.map(|entry| (entry.name.as_str(), listeners.count(entry.key())));
        f.debug_map().entries(counts).finish()
    }
}
