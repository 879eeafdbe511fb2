//! Node's `async_hooks`: values that follow a request, and the ids and life of what a program
//! starts.
//!
//! ```
//! use phaseloop_node::async_hooks::AsyncLocalStorage;
//! use phaseloop_node::{run, set_timeout};
//!
//! run(async {
//!     let request = AsyncLocalStorage::<u32>::new();
//!     for number in [7, 8] {
//!         let seen = request.clone();
//!         request.run(number, || {
//!             set_timeout(1, move || assert_eq!(*seen.get_store().unwrap(), number));
//!         });
//!     }
//!     assert_eq!(request.get_store(), None);
//! });
//! ```
//!
//! | Node | here |
//! |---|---|
//! | `new AsyncLocalStorage()` | [`AsyncLocalStorage::new`] |
//! | `run`, `exit`, `enterWith`, `getStore`, `disable` | methods of [`AsyncLocalStorage`] |
//! | `AsyncLocalStorage.bind(f)` | [`AsyncLocalStorage::bind`] |
//! | `AsyncLocalStorage.snapshot()` | [`AsyncLocalStorage::snapshot`] |
//! | `new AsyncResource(type)`, `runInAsyncScope`, `bind` | [`AsyncResource`] |
//! | `createHook({ init, before, … })` | [`create_hook`] with [`Callbacks`] |
//! | `executionAsyncId()`, `triggerAsyncId()` | [`execution_async_id`], [`trigger_async_id`] |
//! | `EventEmitterAsyncResource` | [`events::EventEmitterAsyncResource`] |
//!
//! # What runs with which store
//!
//! | what | store of |
//! |---|---|
//! | ticks, microtasks, immediates, each firing of a timer | the call that queued or set it |
//! | a reaction of a promise | the call of `then`, whoever settles the promise |
//! | an async function, over all its awaits | its call |
//! | a listener | the `emit`; [`AsyncResource::bind_listener`] gives it that of its making |
//! | callbacks of files, names and children | the call that started the operation |
//! | a client socket | `connect` |
//! | the event `connection`, requests of an HTTP server | `listen` |
//! | an accepted socket, the events `upgrade` and `connect` of an HTTP server | none |
//! | a port, a worker, a datagram socket | its making |
//! | a listener for uncaught errors | what threw |
//! | a listener for unhandled rejections | the making of the promise |
//!
//! What a callback enters by [`enter_with`](AsyncLocalStorage::enter_with) stays with its timer,
//! socket, server, parser, port or [`AsyncResource`], as in Node 20: the next firing of an
//! interval, the next chunk of a connection, the body and the next request of a kept-alive
//! connection find it. Later versions of Node end it with the callback, as
//! [`context`](phaseloop::context) does.
//!
//! In plain Rust: [`context::Variable`](phaseloop::context::Variable), which is a `static`.
//!
//! [`events::EventEmitterAsyncResource`]: crate::events::EventEmitterAsyncResource

mod hooks;
mod kept;
mod resource;
mod work;

use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use self::hooks::Hooks;
pub use self::hooks::{AsyncHook, Callbacks, create_hook, execution_async_id, trigger_async_id};
pub(crate) use self::kept::Kept;
pub use self::resource::AsyncResource;
pub(crate) use self::work::{Capture, Work};
use phaseloop::extension::frame::{Frame, Key, Switch};
use phaseloop::extension::frame::{log_value, use_contexts};

/// A store that follows what is started inside of [`run`](Self::run). JavaScript: `new
/// AsyncLocalStorage()`. Clones refer to the same storage.
///
/// # Examples
///
/// ```
/// use phaseloop_node::async_hooks::AsyncLocalStorage;
/// use phaseloop_node::{Promise, run};
///
/// run(async {
///     let user = AsyncLocalStorage::new();
///     let seen = user.clone();
///     user.run("ann", || {
///         Promise::resolved(()).then(move |()| assert_eq!(*seen.get_store().unwrap(), "ann"));
///     });
/// });
/// ```
pub struct AsyncLocalStorage<T> {
    /// Distinguishes the storages of a process.
    number: u64,
    is_enabled: Switch,
    _store: PhantomData<fn() -> T>,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

impl<T: 'static> AsyncLocalStorage<T> {
    /// Creates a storage without a store.
    #[must_use]
    pub fn new() -> Self {
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            is_enabled: Switch::default(),
            _store: PhantomData,
        }
    }

    fn key(&self) -> Key {
        Key::Numbered(self.number)
    }

    /// Returns the store. JavaScript: `storage.getStore()`.
    #[must_use]
    pub fn get_store(&self) -> Option<Rc<T>> {
        if !self.is_enabled.get() {
            return None;
        }
        Frame::current_value(self.key())?.downcast().ok()
    }

    /// Calls `f` with a store, and returns its result. The store before is back afterwards, also
    /// after a panic; what `f` enters in other storages stays. JavaScript: `storage.run(store, f)`.
    pub fn run<R>(&self, store: T, f: impl FnOnce() -> R) -> R {
        struct Back {
            key: Key,
            outside: Frame,
            entered: Frame,
        }
        impl Drop for Back {
            fn drop(&mut self) {
                let now = Frame::current();
                let frame = if now.is(&self.entered) {
                    std::mem::take(&mut self.outside)
                } else {
                    now.with_value_of(self.key, &self.outside)
                };
                drop(frame.enter());
            }
        }

        let entered = self.frame_with(store);
        let _back = Back {
            key: self.key(),
            entered: entered.clone(),
            outside: entered.enter(),
        };
        f()
    }

    /// Calls `f` without a store, and returns its result. JavaScript: `storage.exit(f)`.
    ///
    /// As in Node 20, the storage is [disabled](Self::disable) for the call, and a
    /// [`run`](Self::run) inside of it enables it again.
    pub fn exit<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Enabled<'a>(&'a Switch);
        impl Drop for Enabled<'_> {
            fn drop(&mut self) {
                self.0.set(true);
            }
        }

        if !self.is_enabled.get() {
            return f();
        }
        let _enabled = Enabled(&self.is_enabled);
        self.is_enabled.set(false);
        f()
    }

    /// Sets the store for the rest of the callback, or of the async function over its awaits, and
    /// for the next callback of the same timer, socket or resource. What was started before keeps
    /// what it has. JavaScript: `storage.enterWith(store)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::async_hooks::AsyncLocalStorage;
    /// use phaseloop_node::{run, set_immediate};
    ///
    /// run(async {
    ///     let storage = AsyncLocalStorage::new();
    ///     let (one, two) = (storage.clone(), storage.clone());
    ///     set_immediate(move || {
    ///         one.enter_with(1);
    ///         assert_eq!(*one.get_store().unwrap(), 1);
    ///     });
    ///     set_immediate(move || assert_eq!(two.get_store(), None));
    /// });
    /// ```
    pub fn enter_with(&self, store: T) {
        drop(self.frame_with(store).enter());
    }

    /// Hides the store until the next [`run`](Self::run) or [`enter_with`](Self::enter_with). What
    /// is started meanwhile is without a store for good. JavaScript: `storage.disable()`.
    pub fn disable(&self) {
        self.is_enabled.set(false);
    }

    fn frame_with(&self, store: T) -> Frame {
        use_contexts();
        log_value::<T>();
        self.is_enabled.set(true);
        let switch = Some(self.is_enabled.clone());
        Frame::current().with(self.key(), Rc::new(store), switch)
    }
}

/// Functions that concern all storages.
impl AsyncLocalStorage<()> {
    /// Returns a function that calls `f` with the stores of now. JavaScript:
    /// `AsyncLocalStorage.bind(f)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::async_hooks::AsyncLocalStorage;
    ///
    /// let storage = AsyncLocalStorage::new();
    /// let seen = storage.clone();
    /// let look = storage.run(7, || AsyncLocalStorage::bind(move |()| *seen.get_store().unwrap()));
    /// assert_eq!(storage.run(8, || look(())), 7);
    /// ```
    pub fn bind<A, R>(f: impl Fn(A) -> R) -> impl Fn(A) -> R {
        AsyncResource::bound(f)
    }

    /// Returns the stores of now, for calls of [`run`](Snapshot::run). JavaScript:
    /// `AsyncLocalStorage.snapshot()`.
    #[must_use]
    pub fn snapshot() -> Snapshot {
        Snapshot(AsyncResource::of_now())
    }
}

/// The stores of one point of the program, of [`AsyncLocalStorage::snapshot`]. Clones refer to the
/// same snapshot.
///
/// # Examples
///
/// ```
/// use phaseloop_node::async_hooks::AsyncLocalStorage;
///
/// let storage = AsyncLocalStorage::new();
/// let snapshot = storage.run(7, AsyncLocalStorage::snapshot);
/// assert_eq!(*snapshot.run(|| storage.get_store()).unwrap(), 7);
/// ```
#[derive(Clone, Debug)]
pub struct Snapshot(AsyncResource);

impl Snapshot {
    /// Calls `f` with the stores of the snapshot, and returns its result. Those before are back
    /// afterwards, also after a panic. JavaScript: `snapshot(f)`.
    pub fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        self.0.run_in_async_scope(f)
    }
}

impl<T: 'static> Default for AsyncLocalStorage<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for AsyncLocalStorage<T> {
    fn clone(&self) -> Self {
        Self {
            number: self.number,
            is_enabled: self.is_enabled.clone(),
            _store: PhantomData,
        }
    }
}

impl<T> fmt::Debug for AsyncLocalStorage<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncLocalStorage")
            .field("is_enabled", &self.is_enabled.get())
            .finish_non_exhaustive()
    }
}
