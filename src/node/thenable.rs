//! What a promise may be resolved with: another promise, or anything that has a `then`.

use std::fmt;
use std::future::IntoFuture;

use super::promise::{Awaited, Deferred, Promise};

mod sealed {
    use super::{Deferred, Promise, Thenable};

    #[expect(
        unnameable_types,
        reason = "keeps the trait `PromiseLike` from being implemented elsewhere"
    )]
    pub trait Sealed<T> {
        /// Settles the promise of `deferred` some microtasks later.
        fn settle(self, deferred: Deferred<T>);
    }

    impl<T: Clone + 'static> Sealed<T> for Promise<T> {
        fn settle(self, deferred: Deferred<T>) {
            deferred.settle_as(self);
        }
    }

    impl<T: Clone + 'static> Sealed<T> for &Promise<T> {
        fn settle(self, deferred: Deferred<T>) {
            deferred.settle_as(self.clone());
        }
    }

    impl<T: Clone + 'static> Sealed<T> for Thenable<T> {
        fn settle(self, deferred: Deferred<T>) {
            deferred.settle_by(self.then);
        }
    }
}

/// A [`Promise`] or a [`Thenable`]: what a promise can take over.
pub trait PromiseLike: sealed::Sealed<Self::Output> {
    /// What it is fulfilled with.
    type Output: Clone + 'static;
}

impl<T: Clone + 'static> PromiseLike for Promise<T> {
    type Output = T;
}

impl<T: Clone + 'static> PromiseLike for &Promise<T> {
    type Output = T;
}

impl<T: Clone + 'static> PromiseLike for Thenable<T> {
    type Output = T;
}

/// An object with a function `then`, which is called by a microtask of whoever awaits it or resolves a promise with it, and
/// which settles that promise through the [`Deferred`] it is given.
///
/// # Examples
///
/// ```
/// use phaseloop::node::{Promise, run, thenable};
///
/// run(async {
///     assert_eq!(thenable(|deferred| deferred.resolve(1)).await.unwrap(), 1);
///     let promise = Promise::resolved(1).and_then(|n| thenable(move |deferred| deferred.resolve(n + 1)));
///     assert_eq!(promise.await.unwrap(), 2);
/// });
/// ```
pub fn thenable<T: Clone + 'static>(then: impl FnOnce(Deferred<T>) + 'static) -> Thenable<T> {
    Thenable {
        then: Box::new(then),
    }
}

/// What is not a promise, but can be awaited like one. Made by [`thenable`].
///
/// Awaiting it takes two microtasks if its function resolves at once (N14); a promise that is resolved with it is settled
/// after one, where another promise takes two (N16).
#[must_use = "its function is called when it is awaited, or when a promise is resolved with it"]
pub struct Thenable<T> {
    then: Box<dyn FnOnce(Deferred<T>)>,
}

impl<T: Clone + 'static> Thenable<T> {
    /// A promise that is resolved with this. JavaScript's `Promise.resolve(thenable)`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub fn into_promise(self) -> Promise<T> {
        Promise::new(|deferred| deferred.adopt(self))
    }
}

impl<T: Clone + 'static> IntoFuture for Thenable<T> {
    type Output = <Awaited<T> as Future>::Output;
    type IntoFuture = Awaited<T>;

    fn into_future(self) -> Awaited<T> {
        self.into_promise().into_future()
    }
}

impl<T> fmt::Debug for Thenable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Thenable")
    }
}
