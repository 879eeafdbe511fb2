//! The values that a promise can be resolved with besides plain ones: another promise, or a
//! thenable.

use std::fmt;
use std::future::IntoFuture;

use super::context::Node;
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

/// A [`Promise`] or a [`Thenable`]: a value whose result another promise can adopt.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Promise, PromiseLike, run, thenable};
///
/// /// Starts with 1 and continues with what `next` returns, whatever kind of promise it is.
/// fn after_one<P>(next: impl FnOnce(i32) -> P + 'static) -> Promise<P::Output>
/// where
///     P: PromiseLike + 'static,
/// {
///     Promise::resolved(1).and_then(next)
/// }
///
/// fn main() {
///     run(async {
///         let promise = after_one(|n| Promise::resolved(n + 1));
///         let thenable = after_one(|n| thenable(move |deferred| deferred.resolve(n + 2)));
///         assert_eq!((promise.await.unwrap(), thenable.await.unwrap()), (2, 3));
///     })
///     .into_output()
///     .unwrap();
/// }
/// ```
pub trait PromiseLike: sealed::Sealed<Self::Output> {
    /// The type of the value.
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

/// Creates a thenable: an object with a function `then`.
///
/// When the thenable is awaited, or when a promise is resolved with it, a microtask calls `then`,
/// which settles the promise through the [`Deferred`] that it receives.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, Promise, run, thenable};
///
/// fn main() -> Exit<()> {
///     run(async {
///         assert_eq!(thenable(|deferred| deferred.resolve(1)).await.unwrap(), 1);
///         let next = |n| thenable(move |deferred| deferred.resolve(n + 1));
///         let promise = Promise::resolved(1).and_then(next);
///         assert_eq!(promise.await.unwrap(), 2);
///     })
/// }
/// ```
pub fn thenable<T: Clone + 'static>(then: impl FnOnce(Deferred<T>) + 'static) -> Thenable<T> {
    Thenable {
        then: Box::new(then),
    }
}

/// An object that is not a promise but can be awaited like one, returned by [`thenable`].
///
/// Awaiting it takes two microtasks if its function resolves at once. A promise that is resolved
/// with it is settled after one microtask, where another promise takes two.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, Thenable, run, thenable};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let answer: Thenable<u32> = thenable(|deferred| deferred.resolve(42));
///         assert_eq!(answer.into_promise().await.unwrap(), 42);
///     })
/// }
/// ```
#[must_use = "its function is called when it is awaited, or when a promise is resolved with it"]
pub struct Thenable<T> {
    then: Box<dyn FnOnce(Deferred<T>)>,
}

impl<T: Clone + 'static> Thenable<T> {
    /// Returns a promise that is resolved with this thenable: JavaScript's
    /// `Promise.resolve(thenable)`.
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

    #[track_caller]
    fn into_future(self) -> Awaited<T> {
        // As in JavaScript, the function that awaits a thenable causes its promise.
        let node = Node::current();
        let function = node.function.get();
        let deferred = Deferred::new_on(node, function);
        deferred.adopt(self);
        deferred.promise().into_future()
    }
}

impl<T> fmt::Debug for Thenable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Thenable")
    }
}
