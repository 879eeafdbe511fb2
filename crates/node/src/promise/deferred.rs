//! The settling end of a promise.

use std::fmt;
use std::rc::Rc;

use super::{Promise, PromiseState, catch};
use crate::context::Node;
use crate::error::Error;
use crate::reason::Reason;
use crate::thenable::PromiseLike;

/// The settling end of a promise. Clones refer to the same promise; the first call settles it.
///
/// In plain Rust: a one-shot channel.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Deferred, Exit, run, set_timeout};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let deferred = Deferred::new();
///         let promise = deferred.promise();
///         set_timeout(1, move || deferred.resolve("done"));
///         assert_eq!(promise.await.unwrap(), "done");
///     })
/// }
/// ```
pub struct Deferred<T> {
    promise: Promise<T>,
    /// The number of times that the promise was resolved before: an adoption resolves it, and a
    /// second `Deferred` settles it later. This one acts as long as the promise has that number.
    resolution: u32,
}

impl<T> Deferred<T> {
    /// Returns whether the promise has a handler, or more than `own` values hold it.
    pub(crate) fn is_awaited(&self, own: usize) -> bool {
        let state = &self.promise.0;
        state.is_handled.get() || Rc::strong_count(state) > own
    }
}

impl<T: Clone + 'static> Deferred<T> {
    /// Creates a pending promise, for this to settle.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[must_use]
    #[track_caller]
    pub fn new() -> Self {
        Self::new_on(Node::current(), None)
    }

    /// Creates a pending promise, which the one with the id `parent` has caused.
    #[track_caller]
    pub(crate) fn new_on(node: Rc<Node>, parent: Option<u64>) -> Self {
        Self {
            promise: Promise(PromiseState::pending(node, parent)),
            resolution: 0,
        }
    }

    /// Returns the promise.
    #[must_use]
    pub fn promise(&self) -> Promise<T> {
        self.promise.clone()
    }

    /// Fulfils the promise. Closures and tasks that wait for it run as microtasks, not inside this
    /// call. Does nothing if the promise is resolved already.
    pub fn resolve(&self, value: T) {
        self.settle(Ok(value));
    }

    /// Rejects the promise with what [`throw`](crate::throw) takes: an error, a text, a [`Reason`].
    /// Does nothing if the promise is resolved already.
    pub fn reject(&self, reason: impl Into<Box<dyn std::error::Error>>) {
        self.settle(Err(Reason::new(reason)));
    }

    /// Resolves the promise with `other`, whose result it adopts: JavaScript's `resolve(promise)`.
    /// That takes two microtasks more for a promise, one more for a
    /// [`Thenable`](crate::Thenable). Does nothing if the promise is resolved already.
    pub fn adopt(&self, other: impl PromiseLike<Output = T>) {
        if let Some(next) = self.begin_resolution() {
            other.settle(Self {
                promise: self.promise(),
                resolution: next,
            });
        }
    }

    /// Settles the promise like `other`; a microtask registers the reaction.
    pub(crate) fn settle_as(self, other: Promise<T>) {
        if Rc::ptr_eq(&self.promise.0, &other.0) {
            return self.reject(Error::chaining_cycle());
        }
        let promise = self.promise;
        promise.comes_from(other.0.source());
        promise
            .clone()
            .queue_job(move || other.react(move |result| promise.settle(result)));
    }

    /// Queues a microtask that calls `then` to settle the promise. Its panic rejects the promise.
    pub(crate) fn settle_by(self, then: impl FnOnce(Self) + 'static) {
        self.promise().queue_job(move || {
            if let Err(reason) = catch(|| then(self.clone())) {
                self.settle(Err(reason));
            }
        });
    }

    pub(crate) fn settle(&self, result: Result<T, Reason>) {
        if self.begin_resolution().is_some() {
            self.promise.settle(result);
        }
    }

    /// Marks the promise as resolved and returns the number of the next resolution. Returns `None`
    /// if the promise was resolved through this `Deferred` before, or through a clone.
    fn begin_resolution(&self) -> Option<u32> {
        let resolutions = &self.promise.0.resolutions;
        let next = self.resolution.wrapping_add(1);
        (resolutions.get() == self.resolution).then(|| {
            resolutions.set(next);
            next
        })
    }

    /// Settles the promise with the result of `f`. A panic of `f` rejects it.
    pub(super) fn settle_with(&self, f: impl FnOnce() -> Result<T, Reason>) {
        self.settle(catch(f).and_then(|result| result));
    }
}

impl<T: Clone + 'static> Default for Deferred<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for Deferred<T> {
    fn clone(&self) -> Self {
        Self {
            promise: self.promise.clone(),
            resolution: self.resolution,
        }
    }
}

impl<T> fmt::Debug for Deferred<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Deferred").field(&self.promise).finish()
    }
}
