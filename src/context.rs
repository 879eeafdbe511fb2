//! Values that follow a request through everything it starts.
//!
//! A [`Variable`] has a value for a piece of the program: inside of [`Variable::run`] or
//! [`Variable::scope`], and in all that is spawned, queued or registered there. A log line can so
//! name its request without a parameter in every function.
//!
//! ```
//! use std::time::Duration;
//! use phaseloop::context::Variable;
//! use phaseloop::{spawn, time::sleep};
//!
//! static REQUEST: Variable<u32> = Variable::new();
//!
//! async fn work() -> u32 {
//!     sleep(Duration::from_millis(1)).await;
//!     *REQUEST.get().unwrap()
//! }
//!
//! #[phaseloop::main]
//! async fn main() {
//!     let seven = REQUEST.run(7, || spawn(work()));
//!     let eight = REQUEST.run(8, || spawn(work()));
//!     assert_eq!(REQUEST.get(), None);
//!     assert_eq!((seven.await.unwrap(), eight.await.unwrap()), (7, 8));
//! }
//! ```
//!
//! # Propagation
//!
//! The values of all variables at one point of the program are a *frame*.
//!
//! | what | runs in the frame |
//! |---|---|
//! | a task of [`spawn`], a `JoinSet` or a scope | of the call that spawned it, whoever wakes it |
//! | a tick, a microtask, an immediate, a phase call | of the call that queued it |
//! | the callback of a timer, a hook or another handle | of the call that set it, each time |
//! | the main future | of the call that runs the loop |
//! | a task or a closure sent through a [`Remote`] | that is empty |
//! | the closure of [`spawn_blocking`] | that is empty: it runs on another thread |
//!
//! What a task awaits does not change its frame: after the await, it is the task's own again. A
//! value never leaves its thread, so it need be neither `Send` nor `Sync`.
//!
//! A task is dropped in its frame if it has ended or is aborted, and in an empty one if the loop is
//! dropped. What a callback holds is dropped in the frame of the call that drops it.
//!
//! # Cost
//!
//! A program that sets no variable pays nothing for a poll, and one test for a registration. In a
//! frame, a registration allocates once more, and a task is an entry of a map.
//!
//! [`spawn`]: crate::spawn
//! [`spawn_blocking`]: crate::spawn_blocking
//! [`Remote`]: crate::Remote

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::event_loop::current::{log_value, use_contexts};
use crate::frame::{Frame, Framed, Key};

/// A variable whose value follows what is started where it is set. Define it as a `static`.
///
/// # Examples
///
/// ```
/// use phaseloop::context::Variable;
///
/// static USER: Variable<String> = Variable::new();
///
/// fn main() {
///     assert_eq!(USER.get(), None);
///     USER.run("ann".to_owned(), || {
///         assert_eq!(*USER.get().unwrap(), "ann");
///         USER.run("bob".to_owned(), || assert_eq!(*USER.get().unwrap(), "bob"));
///         USER.exit(|| assert_eq!(USER.get(), None));
///     });
/// }
/// ```
///
/// A constant is no variable, since each of its uses would be another one. The compiler refuses it:
///
/// ```compile_fail
/// # use phaseloop::context::Variable;
/// const USER: &Variable<String> = &Variable::new();
/// ```
#[doc(alias = "AsyncLocalStorage")]
#[doc(alias = "task_local")]
pub struct Variable<T: 'static> {
    /// Its number, which is its identity; 0 until it is used. It is not the address: that of a
    /// constant may be the address of another one, too. What changes cannot be a constant.
    number: AtomicUsize,
    _value: PhantomData<fn() -> T>,
}

impl<T: 'static> Variable<T> {
    /// Creates a variable without a value.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::context::Variable;
    ///
    /// static REQUEST: Variable<u32> = Variable::new();
    ///
    /// fn main() {
    ///     REQUEST.run(7, || {
    ///         assert_eq!(REQUEST.get().as_deref(), Some(&7));
    ///         REQUEST.exit(|| assert!(REQUEST.get().is_none()));
    ///     });
    ///     assert!(REQUEST.get().is_none());
    /// }
    /// ```
    #[must_use]
    pub const fn new() -> Self {
        Self {
            number: AtomicUsize::new(0),
            _value: PhantomData,
        }
    }

    fn key(&'static self) -> Key {
        match self.number.load(Ordering::Relaxed) {
            0 => Key::Static(self.first_number()),
            number => Key::Static(number),
        }
    }

    fn first_number(&self) -> usize {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let new = NEXT.fetch_add(1, Ordering::Relaxed);
        let set = self
            .number
            .compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed);
        // Another thread may have been first.
        set.map_or_else(|number| number, |_| new)
    }

    /// Returns the value in the current frame.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::context::Variable;
    ///
    /// static REQUEST: Variable<u32> = Variable::new();
    ///
    /// fn main() {
    ///     REQUEST.run(7, || {
    ///         assert_eq!(REQUEST.get().as_deref(), Some(&7));
    ///         REQUEST.exit(|| assert!(REQUEST.get().is_none()));
    ///     });
    ///     assert!(REQUEST.get().is_none());
    /// }
    /// ```
    #[must_use]
    pub fn get(&'static self) -> Option<Rc<T>> {
        Frame::current_value(self.key())?.downcast().ok()
    }

    /// Calls `f` with a value of the variable, and returns its result. The value before is back
    /// afterwards, also after a panic.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::context::Variable;
    ///
    /// static REQUEST: Variable<u32> = Variable::new();
    ///
    /// fn main() {
    ///     REQUEST.run(7, || {
    ///         assert_eq!(REQUEST.get().as_deref(), Some(&7));
    ///         REQUEST.exit(|| assert!(REQUEST.get().is_none()));
    ///     });
    ///     assert!(REQUEST.get().is_none());
    /// }
    /// ```
    pub fn run<R>(&'static self, value: T, f: impl FnOnce() -> R) -> R {
        self.frame_with(value).run(f)
    }

    /// Runs a future with a value of the variable, in the frame of this call.
    ///
    /// In plain words: `run` for an async block that is not spawned.
    ///
    /// # Cancel safety
    ///
    /// Dropping the [`Scope`] drops the future, with the value still set.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{context::Variable, task::yield_now};
    ///
    /// static REQUEST: Variable<u32> = Variable::new();
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let work = async {
    ///         yield_now().await;
    ///         *REQUEST.get().unwrap()
    ///     };
    ///     assert_eq!(REQUEST.scope(7, work).await, 7);
    ///     assert_eq!(REQUEST.get(), None);
    /// }
    /// ```
    pub fn scope<F: Future>(&'static self, value: T, future: F) -> Scope<F> {
        Scope {
            future: Framed::new(self.frame_with(value), future),
        }
    }

    /// Calls `f` without a value of the variable, and returns its result.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::context::Variable;
    ///
    /// static REQUEST: Variable<u32> = Variable::new();
    ///
    /// fn main() {
    ///     REQUEST.run(7, || {
    ///         assert_eq!(REQUEST.get().as_deref(), Some(&7));
    ///         REQUEST.exit(|| assert!(REQUEST.get().is_none()));
    ///     });
    ///     assert!(REQUEST.get().is_none());
    /// }
    /// ```
    pub fn exit<R>(&'static self, f: impl FnOnce() -> R) -> R {
        Frame::current().without(self.key()).run(f)
    }

    /// Sets the value for the rest of the callback, or of the task with all its awaits, or of the
    /// [`run`](Self::run) or [`scope`](Self::scope) around. What was started before keeps what it
    /// has. Prefer `run`, whose end is visible.
    ///
    /// Outside of a loop, the value stays until it is set again.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{context::Variable, set_immediate, spawn, task::yield_now};
    ///
    /// static REQUEST: Variable<u32> = Variable::new();
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let task = spawn(async {
    ///         REQUEST.enter_with(7);
    ///         yield_now().await;
    ///         *REQUEST.get().unwrap()
    ///     });
    ///     set_immediate(|| assert_eq!(REQUEST.get(), None));
    ///     assert_eq!(task.await.unwrap(), 7);
    /// }
    /// ```
    pub fn enter_with(&'static self, value: T) {
        drop(self.frame_with(value).enter());
    }

    fn frame_with(&'static self, value: T) -> Frame {
        use_contexts();
        log_value::<T>();
        Frame::current().with(self.key(), Rc::new(value))
    }
}

impl<T: 'static> Default for Variable<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: 'static> fmt::Debug for Variable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variable").finish_non_exhaustive()
    }
}

pin_project! {
    /// The future of [`Variable::scope`].
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the inner future, with the value still set.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::{context::Variable, spawn};
    ///
    /// static REQUEST: Variable<u32> = Variable::new();
    ///
    /// #[phaseloop::main]
    /// async fn main() {
    ///     let handler = async {
    ///         // A task inherits the values of the code that spawns it.
    ///         spawn(async { *REQUEST.get().unwrap() }).await.unwrap()
    ///     };
    ///     assert_eq!(REQUEST.scope(7, handler).await, 7);
    /// }
    /// ```
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct Scope<F> {
        #[pin]
        future: Framed<F>,
    }
}

impl<F: Future> Future for Scope<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.project().future.poll(cx)
    }
}

/// The values of all variables at one point of the program, to be used at another.
///
/// A snapshot is for what the loop does not see: a queue of requests, a pool of connections, a
/// callback that is stored and called later.
///
/// # Examples
///
/// ```
/// use phaseloop::context::{Snapshot, Variable};
///
/// static REQUEST: Variable<u32> = Variable::new();
///
/// fn main() {
///     let snapshot = REQUEST.run(7, Snapshot::new);
///     assert_eq!(snapshot.run(|| REQUEST.get().as_deref().copied()), Some(7));
///
///     let mut add = snapshot.bind(|n| n + *REQUEST.get().unwrap());
///     assert_eq!(REQUEST.run(100, || add(1)), 8);
/// }
/// ```
#[derive(Clone)]
pub struct Snapshot {
    frame: Frame,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").finish_non_exhaustive()
    }
}

impl Snapshot {
    /// Takes a snapshot of the current values.
    #[must_use]
    #[expect(
        clippy::new_without_default,
        reason = "what it returns depends on where it is called"
    )]
    pub fn new() -> Self {
        Self {
            frame: Frame::current(),
        }
    }

    /// Calls `f` with the values of the snapshot. Those before are back afterwards, also after a
    /// panic.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::context::{Snapshot, Variable};
    ///
    /// static REQUEST: Variable<u32> = Variable::new();
    ///
    /// fn main() {
    ///     let snapshot = REQUEST.run(7, Snapshot::new);
    ///     assert_eq!(snapshot.run(|| *REQUEST.get().unwrap()), 7);
    ///     let mut later = snapshot.bind(|()| *REQUEST.get().unwrap());
    ///     assert_eq!(REQUEST.run(8, || later(())), 7);
    /// }
    /// ```
    pub fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        self.frame.clone().run(f)
    }

    /// Returns a function that calls `f` with the values of the snapshot.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop::context::{Snapshot, Variable};
    ///
    /// static REQUEST: Variable<u32> = Variable::new();
    ///
    /// fn main() {
    ///     let snapshot = REQUEST.run(7, Snapshot::new);
    ///     assert_eq!(snapshot.run(|| *REQUEST.get().unwrap()), 7);
    ///     let mut later = snapshot.bind(|()| *REQUEST.get().unwrap());
    ///     assert_eq!(REQUEST.run(8, || later(())), 7);
    /// }
    /// ```
    pub fn bind<A, R>(self, mut f: impl FnMut(A) -> R) -> impl FnMut(A) -> R {
        move |argument| self.run(|| f(argument))
    }
}
