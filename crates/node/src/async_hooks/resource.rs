//! Resources of the program's own.

use std::fmt;
use std::rc::Rc;

use super::hooks::Hooks;
use super::{Capture, Work};

/// A piece of asynchronous work that the loop does not see, such as a query that waits for a
/// connection of a pool. JavaScript: `new AsyncResource(type)`. Clones refer to the same resource.
///
/// It keeps the stores of its making for its callbacks.
///
/// # Examples
///
/// ```
/// use phaseloop_node::async_hooks::{AsyncLocalStorage, AsyncResource};
/// use phaseloop_node::{Exit, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let request = AsyncLocalStorage::new();
///         let query = request.run(7, || AsyncResource::new("Query"));
///         let seen = query.run_in_async_scope(|| *request.get_store().unwrap());
///         assert_eq!(seen, 7);
///     })
/// }
/// ```
#[derive(Clone)]
pub struct AsyncResource(Rc<Capture>);

/// Node's name for the resource of a bound function.
const BOUND: &str = "bound-anonymous-fn";

impl AsyncResource {
    /// Creates a resource. Hooks see `kind` as its type.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[must_use]
    #[track_caller]
    pub fn new(kind: &'static str) -> Self {
        Self::make(kind, None)
    }

    /// Creates a resource with another cause than what runs now. JavaScript: `new
    /// AsyncResource(type, { triggerAsyncId })`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[must_use]
    #[track_caller]
    pub fn with_trigger(kind: &'static str, trigger: u64) -> Self {
        Self::make(kind, Some(trigger))
    }

    #[track_caller]
    fn make(kind: &'static str, trigger: Option<u64>) -> Self {
        drop(Hooks::current());
        Self(Rc::new(Capture::of(kind, trigger)))
    }

    /// Calls `f` with the stores and as the resource of this value, and returns its result. What
    /// was before is back afterwards, also after a panic. JavaScript:
    /// `resource.runInAsyncScope(f)`.
    pub fn run_in_async_scope<R>(&self, f: impl FnOnce() -> R) -> R {
        self.0.run_inside(f)
    }

    /// Returns the id of the resource. JavaScript: `resource.asyncId()`.
    #[must_use]
    pub fn async_id(&self) -> u64 {
        self.0.work.as_ref().map_or(0, Work::id)
    }

    /// Returns the id of what made the resource. JavaScript: `resource.triggerAsyncId()`.
    #[must_use]
    pub fn trigger_async_id(&self) -> u64 {
        self.0.work.as_ref().map_or(0, Work::cause)
    }

    /// Notifies the hooks of the end of the resource. Without this call, the drop of the last clone
    /// does it. JavaScript: `resource.emitDestroy()`.
    pub fn emit_destroy(&self) -> &Self {
        if let Some(work) = self.0.work.as_ref() {
            work.destroy();
        }
        self
    }

    /// Returns a function that calls `f` in the scope of this resource. JavaScript:
    /// `resource.bind(f)`.
    pub fn bind<A, R, F>(&self, f: F) -> impl Fn(A) -> R + use<A, R, F>
    where
        F: Fn(A) -> R,
    {
        let this = self.clone();
        move |argument| this.run_in_async_scope(|| f(argument))
    }

    /// Returns a listener that calls `f` with the stores of now, in place of those of the `emit`.
    /// JavaScript: `AsyncResource.bind(f)`.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::async_hooks::{AsyncLocalStorage, AsyncResource};
    /// use phaseloop_node::events::{Event, EventEmitter};
    /// use phaseloop_node::{Exit, run};
    ///
    /// const DONE: Event<()> = Event::new("done");
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let (request, emitter) = (AsyncLocalStorage::new(), EventEmitter::new());
    ///         let seen = request.clone();
    ///         let listener = move |_: &()| assert_eq!(*seen.get_store().unwrap(), 7);
    ///         request.run(7, || emitter.on(DONE, AsyncResource::bind_listener(listener)));
    ///         request.run(8, || emitter.emit(DONE, ()));
    ///     })
    /// }
    /// ```
    pub fn bind_listener<A: ?Sized>(f: impl Fn(&A)) -> impl Fn(&A) {
        let this = Self::of_now();
        move |argument: &A| this.run_in_async_scope(|| f(argument))
    }

    /// Returns a function that calls `f` with the stores of now.
    pub(super) fn bound<A, R>(f: impl Fn(A) -> R) -> impl Fn(A) -> R {
        let this = Self::of_now();
        move |argument| this.run_in_async_scope(|| f(argument))
    }

    /// The resource of a bound function. It has ids only if hooks are in use.
    pub(super) fn of_now() -> Self {
        let Capture { frame, work } = Capture::new(BOUND).unwrap_or_default();
        let work = work.map(Work::without_end);
        Self(Rc::new(Capture { frame, work }))
    }
}

impl fmt::Debug for AsyncResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncResource")
            .field("async_id", &self.async_id())
            .finish_non_exhaustive()
    }
}
