//! Named channels for what a program reports about itself: Node's `diagnostics_channel`.
//!
//! ```
//! use phaseloop_node::{Exit, diagnostics_channel::channel, run};
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         let requests = channel::<String>("my-library:request");
//!         let seen = requests.subscribe(|url, name| println!("{name}: {url}"));
//!         // A library checks this first, so that a message without a subscriber is not made.
//!         if requests.has_subscribers() {
//!             requests.publish(&"/index.html".to_owned());
//!         }
//!         assert!(requests.unsubscribe(seen));
//!     })
//! }
//! ```
//!
//! | Node | here |
//! |---|---|
//! | `channel(name)` | [`channel`] |
//! | `channel.publish(message)` | [`Channel::publish`] |
//! | `subscribe(name, f)` | [`Channel::subscribe`] |
//! | `unsubscribe(name, f)` | [`Channel::unsubscribe`] |
//! | `hasSubscribers(name)` | [`Channel::has_subscribers`] |
//! | `channel.bindStore(storage, f)` | [`Channel::bind_store`] |
//! | `channel.runStores(message, f)` | [`Channel::run_stores`] |
//! | `tracingChannel(name)` | [`tracing_channel`] |
//!
//! A channel belongs to the loop of its thread. Its messages have one type: channels with the same
//! name and different types are different channels.

mod tracing;

use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

pub use self::tracing::{Stage, Traced, TracingChannel, TracingSubscription, tracing_channel};
use crate::async_hooks::AsyncLocalStorage;
use crate::context::Node;
use crate::process::Origin;
use crate::promise::catch;
use crate::reason::Reason;
use phaseloop::task::next_tick;

/// The channels of a loop that have a handle or a subscriber, by the name and the type.
pub(crate) type Channels = RefCell<HashMap<(Rc<str>, TypeId), Rc<dyn Any>>>;

type Subscriber<M> = Rc<dyn Fn(&M, &str)>;

/// Calls the function with the store that a message gives.
type Store<M> = Rc<dyn Fn(&M, &mut dyn FnMut())>;

/// Replaced by each change, so that a publication reaches those of its beginning.
type List<K, F> = RefCell<Rc<[(K, F)]>>;

/// A channel for messages of type `M`. Clones, and channels of the same name, are one channel.
/// JavaScript: `diagnostics_channel.Channel`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, diagnostics_channel::channel, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let requests = channel::<String>("my-library:request");
///         let seen = requests.subscribe(|url, name| println!("{name}: {url}"));
///         // A library checks this first, so that a message without a subscriber is not made.
///         if requests.has_subscribers() {
///             requests.publish(&"/index.html".to_owned());
///         }
///         assert!(requests.unsubscribe(seen));
///     })
/// }
/// ```
pub struct Channel<M: 'static> {
    inner: Rc<Inner<M>>,
    node: Rc<Node>,
}

struct Inner<M: 'static> {
    name: Rc<str>,
    subscribers: List<Subscription, Subscriber<M>>,
    /// By the numbers of the storages.
    stores: List<u64, Store<M>>,
    next: Cell<u64>,
}

/// Identifies a subscriber of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subscription(u64);

/// Returns the channel of a name; the first call creates it. JavaScript:
/// `diagnostics_channel.channel(name)`.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
#[track_caller]
pub fn channel<M: 'static>(name: impl Into<Rc<str>>) -> Channel<M> {
    let (name, node) = (name.into(), Node::current());
    let mut channels = node.channels.borrow_mut();
    let entry = channels.entry((name.clone(), TypeId::of::<M>()));
    let known = entry.or_insert_with(|| {
        Rc::new(Inner::<M> {
            name,
            subscribers: RefCell::new(Rc::new([])),
            stores: RefCell::new(Rc::new([])),
            next: Cell::new(0),
        })
    });
    let inner = known.clone().downcast();
    let inner = inner.expect("the type is a part of the key");
    drop(channels);
    Channel { inner, node }
}

impl<M: 'static> Channel<M> {
    /// Returns the name. JavaScript: `channel.name`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns whether the channel has a subscriber or a store. JavaScript:
    /// `channel.hasSubscribers`.
    #[must_use]
    pub fn has_subscribers(&self) -> bool {
        let inner = &self.inner;
        !inner.subscribers.borrow().is_empty() || !inner.stores.borrow().is_empty()
    }

    /// Adds a subscriber, which gets each message and the name of the channel. It stays when all
    /// handles to the channel are dropped. JavaScript: `channel.subscribe(f)`.
    pub fn subscribe(&self, f: impl Fn(&M, &str) + 'static) -> Subscription {
        let id = Subscription(self.inner.next.get());
        self.inner.next.set(id.0 + 1);
        let mut subscribers = self.inner.subscribers.borrow_mut();
        let added = (id, Rc::new(f) as Subscriber<M>);
        *subscribers = subscribers.iter().cloned().chain([added]).collect();
        id
    }

    /// Removes a subscriber. Returns `false` if it was removed before. A message that is being
    /// published still reaches it. JavaScript: `channel.unsubscribe(f)`.
    pub fn unsubscribe(&self, subscription: Subscription) -> bool {
        let others = |(id, _): &&(Subscription, _)| *id != subscription;
        let before = self.inner.subscribers.borrow().clone();
        let left: Rc<[_]> = before.iter().filter(others).cloned().collect();
        let is_removed = left.len() < before.len();
        self.inner.subscribers.replace(left);
        is_removed
    }

    /// Calls all subscribers with a message, inside of this call. The error of a subscriber is an
    /// uncaught exception on a tick; the others are called. JavaScript: `channel.publish(message)`.
    pub fn publish(&self, message: &M) {
        let subscribers = self.inner.subscribers.borrow().clone();
        for (_, subscriber) in subscribers.iter() {
            if let Err(reason) = catch(|| subscriber(message, self.name())) {
                report(reason);
            }
        }
    }

    /// Lets [`run_stores`](Self::run_stores) set the store of `storage` to what `transform` makes
    /// of the message. It replaces an earlier function for the same storage. JavaScript:
    /// `channel.bindStore(storage, transform)`.
    pub fn bind_store<S: 'static>(
        &self,
        storage: &AsyncLocalStorage<S>,
        transform: impl Fn(&M) -> S + 'static,
    ) {
        let (number, storage) = (storage.number(), storage.clone());
        let store: Store<M> = Rc::new(move |message, go_on| {
            match catch(|| transform(message)) {
                Ok(store) => return storage.run(store, go_on),
                Err(reason) => report(reason),
            }
            go_on();
        });
        let mut stores = self.inner.stores.borrow_mut();
        let mut list = stores.to_vec();
        match list.iter_mut().find(|(known, _)| *known == number) {
            Some((_, known)) => *known = store,
            None => list.push((number, store)),
        }
        *stores = list.into();
    }

    /// Undoes [`bind_store`](Self::bind_store). Returns `false` if the storage is not bound.
    /// JavaScript: `channel.unbindStore(storage)`.
    pub fn unbind_store<S: 'static>(&self, storage: &AsyncLocalStorage<S>) -> bool {
        let others = |(number, _): &&(u64, _)| *number != storage.number();
        let before = self.inner.stores.borrow().clone();
        let left: Rc<[_]> = before.iter().filter(others).cloned().collect();
        let is_removed = left.len() < before.len();
        self.inner.stores.replace(left);
        is_removed
    }

    /// Sets the bound stores, publishes the message, and calls `f` with them. JavaScript:
    /// `channel.runStores(message, f)`.
    ///
    /// # Panics
    ///
    /// With the panic of `f`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, async_hooks::AsyncLocalStorage, diagnostics_channel::channel};
    /// use phaseloop_node::{run, set_timeout};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let (request, requests) = (AsyncLocalStorage::new(), channel::<u32>("request"));
    ///         requests.bind_store(&request, |number| format!("request {number}"));
    ///         requests.run_stores(&7, || {
    ///             set_timeout(1, move || assert_eq!(*request.get_store().unwrap(), "request 7"));
    ///         });
    ///     })
    /// }
    /// ```
    pub fn run_stores<R>(&self, message: &M, f: impl FnOnce() -> R) -> R {
        let stores = self.inner.stores.borrow().clone();
        let (mut f, mut result) = (Some(f), None);
        run_in(&stores, message, &mut || {
            self.publish(message);
            result = f.take().map(|f| f());
        });
        result.expect("each store calls its function once")
    }
}

/// Calls `f` with all stores.
fn run_in<M>(stores: &[(u64, Store<M>)], message: &M, f: &mut dyn FnMut()) {
    match stores.split_first() {
        Some(((_, store), rest)) => store(message, &mut || run_in(rest, message, f)),
        None => f(),
    }
}

/// Reports the error of a subscriber.
fn report(reason: Reason) {
    next_tick(move || Node::current().uncaught(reason, Origin::UncaughtException));
}

impl<M: 'static> Clone for Channel<M> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            node: self.node.clone(),
        }
    }
}

/// Forgets the channel with its last handle, if it has no subscriber.
impl<M: 'static> Drop for Channel<M> {
    fn drop(&mut self) {
        // This handle, and that of the loop.
        if Rc::strong_count(&self.inner) > 2 || self.has_subscribers() {
            return;
        }
        let key = (self.inner.name.clone(), TypeId::of::<M>());
        let mut channels = self.node.channels.borrow_mut();
        let is_known =
            |known: &Rc<dyn Any>| std::ptr::addr_eq(Rc::as_ptr(known), Rc::as_ptr(&self.inner));
        let forgotten = channels.get(&key).is_some_and(is_known);
        let forgotten = forgotten.then(|| channels.remove(&key));
        drop(channels);
        drop(forgotten);
    }
}

impl<M: 'static> fmt::Debug for Channel<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("name", &self.inner.name)
            .field("has_subscribers", &self.has_subscribers())
            .finish_non_exhaustive()
    }
}
