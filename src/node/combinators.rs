//! Several promises as one. Those that are not needed any more go on all the same: a promise cannot be cancelled.

mod tuples;

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::fmt;
use std::rc::Rc;

use super::promise::{Deferred, Promise};
use super::reason::Reason;

/// All values, in the order of the promises, or the first reason. Of no promises: fulfilled at once.
///
/// It takes an array, a vector or an iterator of promises of one type, and gives a vector; or a tuple of promises of any
/// types, and gives a tuple.
///
/// An `await` resumes two microtasks after the deciding promise was settled: one for the member, one for the whole.
///
/// In plain Rust: await one handle after the other, or a [`JoinSet`](crate::task::JoinSet).
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::node::{all, call, run, sleep};
///
/// run(async {
///     let (answer, text, ()) = all((call(async { 42 }), call(async { "hi" }), sleep(1))).await.unwrap();
///     assert_eq!((answer, text), (42, "hi"));
///     let squares = all((1..=3).map(|n| call(async move { n * n }))).await.unwrap();
///     assert_eq!(squares, [1, 4, 9]);
/// });
/// ```
pub fn all<V, P: Promises<V>>(promises: P) -> Promise<V> {
    promises.all()
}

/// What became of each promise, in their order; otherwise as [`all`].
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::node::{Promise, all_settled, run, try_call};
///
/// run(async {
///     let number = try_call(async { "x".parse::<i32>() });
///     let (number, text) = all_settled((number, Promise::resolved("y"))).await.unwrap();
///     assert!(number.is_err());
///     assert_eq!(text.unwrap(), "y");
/// });
/// ```
pub fn all_settled<V, P: Promises<V>>(promises: P) -> Promise<P::Results> {
    promises.all_settled()
}

/// What becomes of the promise that is settled first; the others go on. Otherwise as [`all`]; of none, it stays pending.
///
/// In plain Rust: `select`, which drops the losers.
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn race<T: Clone + 'static>(promises: impl IntoIterator<Item = Promise<T>>) -> Promise<T> {
    let deferred = Deferred::new();
    for promise in promises {
        let deferred = deferred.clone();
        promise.react(move |result| deferred.settle(result));
    }
    deferred.promise()
}

/// The value of the promise that is fulfilled first; if none is, an [`AggregateError`]. Otherwise as [`all`].
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn any<T: Clone + 'static>(promises: impl IntoIterator<Item = Promise<T>>) -> Promise<T> {
    let deferred = Deferred::new();
    let fulfilled = deferred.clone();
    let gathered = Gathered::new(move |reasons| fulfilled.reject(AggregateError { reasons }));
    for promise in promises {
        let (place, deferred) = (gathered.place(), deferred.clone());
        promise.react(move |result| match result {
            Ok(value) => deferred.resolve(value),
            Err(reason) => place(reason),
        });
    }
    gathered.complete();
    deferred.promise()
}

/// What [`all`] and [`all_settled`] take: many promises of one type, whose values `V` are a vector, or a tuple of up to
/// eight promises of any types, whose values are a tuple.
pub trait Promises<V> {
    /// What became of each, together.
    type Results: Clone + 'static;

    /// See [`all`].
    fn all(self) -> Promise<V>;

    /// See [`all_settled`].
    fn all_settled(self) -> Promise<Self::Results>;
}

impl<T, P> Promises<Vec<T>> for P
where
    T: Clone + 'static,
    P: IntoIterator<Item = Promise<T>>,
{
    type Results = Vec<Result<T, Reason>>;

    fn all(self) -> Promise<Vec<T>> {
        gather(self, |result| result)
    }

    fn all_settled(self) -> Promise<Self::Results> {
        gather(self, Ok)
    }
}

fn gather<T: Clone + 'static, U: Clone + 'static>(
    promises: impl IntoIterator<Item = Promise<T>>,
    convert: fn(Result<T, Reason>) -> Result<U, Reason>,
) -> Promise<Vec<U>> {
    let deferred = Deferred::new();
    let full = deferred.clone();
    let gathered = Gathered::new(move |values| full.resolve(values));
    for promise in promises {
        let (place, deferred) = (gathered.place(), deferred.clone());
        promise.react(move |result| match convert(result) {
            Ok(value) => place(value),
            Err(reason) => deferred.reject(reason),
        });
    }
    gathered.complete();
    deferred.promise()
}

type WhenFull<T> = Box<dyn FnOnce(Vec<T>)>;

/// Places to be filled, in any order; when all are, somebody is told.
struct Gathered<T> {
    places: RefCell<Vec<Option<T>>>,
    /// How many are empty; one more until all are made.
    left: Cell<usize>,
    full: RefCell<Option<WhenFull<T>>>,
}

impl<T: 'static> Gathered<T> {
    fn new(full: impl FnOnce(Vec<T>) + 'static) -> Rc<Self> {
        Rc::new(Self {
            places: RefCell::default(),
            left: Cell::new(1),
            full: RefCell::new(Some(Box::new(full))),
        })
    }

    /// One more place; returns what fills it.
    fn place(self: &Rc<Self>) -> impl FnOnce(T) + 'static {
        let index = self.places.borrow().len();
        self.places.borrow_mut().push(None);
        self.left.set(self.left.get() + 1);
        let gathered = self.clone();
        move |value| {
            gathered.places.borrow_mut()[index] = Some(value);
            gathered.complete();
        }
    }

    fn complete(&self) {
        let left = self.left.get() - 1;
        self.left.set(left);
        let full = if left == 0 { self.full.take() } else { None };
        if let Some(full) = full {
            full(self.places.take().into_iter().flatten().collect());
        }
    }
}

/// Every promise of [`any`] was rejected.
#[derive(Clone, Debug)]
pub struct AggregateError {
    reasons: Vec<Reason>,
}

impl AggregateError {
    /// `AggregateError`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        "AggregateError"
    }

    /// Why, in the order of the promises. Node's `errors`.
    #[must_use]
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }
}

impl fmt::Display for AggregateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("All promises were rejected")
    }
}

impl Error for AggregateError {}
