//! Node's `async_hooks`: values that follow a request, and the ids and life of what a program
//! starts.
//!
//! ```
//! use phaseloop_node::async_hooks::AsyncLocalStorage;
//! use phaseloop_node::{Exit, run, set_timeout};
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         let request = AsyncLocalStorage::<u32>::new();
//!         for number in [7, 8] {
//!             let seen = request.clone();
//!             request.run(number, || {
//!                 set_timeout(1, move || assert_eq!(*seen.get_store().unwrap(), number));
//!             });
//!         }
//!         assert_eq!(request.get_store(), None);
//!     })
//! }
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
//! # The store of each callback
//!
//! | what | store of |
//! |---|---|
//! | ticks, microtasks, immediates, each firing of a timer | the call that queued or set it |
//! | a reaction of a promise | the call of `then`, whoever settles the promise |
//! | an async function, over all its awaits | its call |
//! | a listener | the `emit`; [`AsyncResource::bind_listener`] gives it that of its making |
//! | callbacks of files, names and children | the call that started the operation |
//! | a client socket | `connect` |
//! | the event `connection`, requests and upgrades of an HTTP server | `listen` |
//! | an accepted socket | none |
//! | a port, a worker, a datagram socket | its making |
//! | a listener for uncaught errors | what threw |
//! | a listener for unhandled rejections | the call that rejected the promise |
//! | the callback of [`finished`](crate::stream::finished) and of a pipeline | the call |
//!
//! What a callback enters by [`enter_with`](AsyncLocalStorage::enter_with) ends with it.
//!
//! In plain Rust: [`context::Variable`](phaseloop::context::Variable), which is a `static`.
//!
//! [`events::EventEmitterAsyncResource`]: crate::events::EventEmitterAsyncResource

mod hooks;
mod resource;
mod work;

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use self::hooks::Hooks;
pub use self::hooks::{AsyncHook, Callbacks, create_hook, execution_async_id, trigger_async_id};
pub use self::resource::AsyncResource;
pub(crate) use self::work::{Capture, Work};
use phaseloop::extension::frame::{Frame, Key};
use phaseloop::extension::frame::{log_value, use_contexts};

/// A store that follows what is started inside of [`run`](Self::run). JavaScript: `new
/// AsyncLocalStorage()`. Clones refer to the same storage.
///
/// # Examples
///
/// ```
/// use phaseloop_node::async_hooks::AsyncLocalStorage;
/// use phaseloop_node::{Exit, Promise, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let user = AsyncLocalStorage::new();
///         let seen = user.clone();
///         user.run("ann", || {
///             Promise::resolved(()).then(move |()| assert_eq!(*seen.get_store().unwrap(), "ann"));
///         });
///     })
/// }
/// ```
pub struct AsyncLocalStorage<T> {
    /// Distinguishes the storages of a process.
    number: u64,
    _store: PhantomData<fn() -> T>,
}

static NEXT: AtomicU64 = AtomicU64::new(0);

impl<T: 'static> AsyncLocalStorage<T> {
    /// Creates a storage without a store.
    #[must_use]
    pub fn new() -> Self {
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            _store: PhantomData,
        }
    }

    /// Returns what distinguishes the storages of a process.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    fn key(&self) -> Key {
        Key::Numbered(self.number)
    }

    /// Returns the store. JavaScript: `storage.getStore()`.
    #[must_use]
    pub fn get_store(&self) -> Option<Rc<T>> {
        Frame::current_value(self.key())?.downcast().ok()
    }

    /// Calls `f` with a store, and returns its result. The store before is back afterwards, also
    /// after a panic; what `f` enters in other storages stays. JavaScript: `storage.run(store, f)`.
    pub fn run<R>(&self, store: T, f: impl FnOnce() -> R) -> R {
        self.run_with(Rc::new(store), f)
    }

    fn run_with<R>(&self, store: Rc<dyn Any>, f: impl FnOnce() -> R) -> R {
        struct Back {
            key: Key,
            store: Option<Rc<dyn Any>>,
        }
        impl Drop for Back {
            fn drop(&mut self) {
                // As in Node, the frame that follows is a new one, not the one before. It has no
                // entry without a store: a program may make a storage for each thing that it does.
                let frame = Frame::current();
                let frame = match self.store.take() {
                    Some(store) => frame.with(self.key, store),
                    None => frame.unset(self.key),
                };
                drop(frame.enter());
            }
        }

        let before = Frame::current_value(self.key());
        self.enter(store);
        let _back = Back {
            key: self.key(),
            store: before,
        };
        f()
    }

    /// Calls `f` without a store, and returns its result. JavaScript: `storage.exit(f)`.
    pub fn exit<R>(&self, f: impl FnOnce() -> R) -> R {
        if self.get_store().is_none() {
            return f();
        }
        self.run_with(Rc::new(NoStore), f)
    }

    /// Sets the store for the rest of the callback, or of the async function over its awaits. What
    /// was started before keeps what it has. JavaScript: `storage.enterWith(store)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::async_hooks::AsyncLocalStorage;
    /// use phaseloop_node::{Exit, run, set_immediate};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let storage = AsyncLocalStorage::new();
    ///         let (one, two) = (storage.clone(), storage.clone());
    ///         set_immediate(move || {
    ///             one.enter_with(1);
    ///             assert_eq!(*one.get_store().unwrap(), 1);
    ///         });
    ///         set_immediate(move || assert_eq!(two.get_store(), None));
    ///     })
    /// }
    /// ```
    pub fn enter_with(&self, store: T) {
        self.enter(Rc::new(store));
    }

    fn enter(&self, store: Rc<dyn Any>) {
        use_contexts();
        log_value::<T>();
        drop(Frame::current().with(self.key(), store).enter());
    }

    /// Removes the store of the running callback, also for what it has started with the same
    /// stores. JavaScript: `storage.disable()`.
    pub fn disable(&self) {
        Frame::current().remove(self.key());
    }
}

/// Stands for no store.
struct NoStore;

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
    /// fn main() {
    ///     let storage = AsyncLocalStorage::new();
    ///     let seen = storage.clone();
    ///     let bind = || AsyncLocalStorage::bind(move |()| *seen.get_store().unwrap());
    ///     let look = storage.run(7, bind);
    ///     assert_eq!(storage.run(8, || look(())), 7);
    /// }
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
/// fn main() {
///     let storage = AsyncLocalStorage::new();
///     let snapshot = storage.run(7, AsyncLocalStorage::snapshot);
///     assert_eq!(*snapshot.run(|| storage.get_store()).unwrap(), 7);
/// }
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
            _store: PhantomData,
        }
    }
}

impl<T> fmt::Debug for AsyncLocalStorage<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncLocalStorage")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
