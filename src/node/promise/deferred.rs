//! The settling end of a promise.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;

use super::{Promise, PromiseState, catch};
use crate::node::context::Node;
use crate::node::error::Error;
use crate::node::reason::Reason;
use crate::node::thenable::PromiseLike;

/// The settling end of a promise. Clones refer to the same promise; the first call settles it.
///
/// In plain Rust: a one-shot channel.
///
/// # Examples
///
/// ```
/// use phaseloop::node::{Deferred, run, set_timeout};
///
/// run(async {
///     let deferred = Deferred::new();
///     let promise = deferred.promise();
///     set_timeout(1, move || deferred.resolve("done"));
///     assert_eq!(promise.await.unwrap(), "done");
/// });
/// ```
pub struct Deferred<T> {
    promise: Promise<T>,
    /// Whether the promise is resolved. A resolved promise may still be pending, if it has adopted
    /// another one.
    is_resolved: Rc<Cell<bool>>,
}

impl<T: Clone + 'static> Deferred<T> {
    /// Creates a pending promise, for this to settle.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[must_use]
    pub fn new() -> Self {
        Self::new_on(Node::current())
    }

    pub(super) fn new_on(node: Rc<Node>) -> Self {
        Self {
            promise: Promise(PromiseState::pending(node)),
            is_resolved: Rc::new(Cell::new(false)),
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

    /// Rejects the promise. Does nothing if the promise is resolved already.
    pub fn reject(&self, reason: impl Into<Reason>) {
        self.settle(Err(reason.into()));
    }

    /// Resolves the promise with `other`, whose result it adopts: JavaScript's `resolve(promise)`.
    /// That takes two microtasks more for a promise, one more for a
    /// [`Thenable`](crate::node::Thenable). Does nothing if the promise is resolved already.
    pub fn adopt(&self, other: impl PromiseLike<Output = T>) {
        if !self.is_resolved.replace(true) {
            other.settle(Self {
                promise: self.promise(),
                is_resolved: Rc::default(),
            });
        }
    }

    /// Settles the promise like `other`; a microtask registers the reaction.
    pub(in crate::node) fn settle_as(self, other: Promise<T>) {
        if Rc::ptr_eq(&self.promise.0, &other.0) {
            return self.reject(Error::chaining_cycle());
        }
        let promise = self.promise;
        promise
            .clone()
            .queue(move || other.react(move |result| promise.settle(result)));
    }

    /// Queues a microtask that calls `then` to settle the promise. Its panic rejects the promise.
    pub(in crate::node) fn settle_by(self, then: impl FnOnce(Self) + 'static) {
        self.promise().queue(move || {
            if let Err(reason) = catch(|| then(self.clone())) {
                self.reject(reason);
            }
        });
    }

    pub(in crate::node) fn settle(&self, result: Result<T, Reason>) {
        if !self.is_resolved.replace(true) {
            self.promise.settle(result);
        }
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
            is_resolved: self.is_resolved.clone(),
        }
    }
}

impl<T> fmt::Debug for Deferred<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Deferred").field(&self.promise).finish()
    }
}
