//! Combinators: several promises as one. A promise cannot be cancelled, so the operations behind
//! the other promises continue after the result is decided.

mod tuples;

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::fmt;
use std::rc::Rc;

use super::promise::{Deferred, Promise};
use super::reason::Reason;
use phaseloop::extension::{Combined, Source};
use phaseloop::task::Id;

/// Returns a promise of all values, in the order of the promises; the first rejection rejects it.
/// Without promises it is fulfilled at once.
///
/// An array, a vector or an iterator of promises of one type gives a vector. A tuple of promises of
/// any types gives a tuple.
///
/// An `await` resumes two microtasks after the deciding promise was settled: one for the member,
/// one for the combined promise.
///
/// In plain Rust: await one handle after the other, or a [`JoinSet`](phaseloop::task::JoinSet).
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, all, call, run, sleep};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let three = all((call(async { 42 }), call(async { "hi" }), sleep(1)));
///         let (answer, text, ()) = three.await.unwrap();
///         assert_eq!((answer, text), (42, "hi"));
///         let squares = all((1..=3).map(|n| call(async move { n * n }))).await.unwrap();
///         assert_eq!(squares, [1, 4, 9]);
///     })
/// }
/// ```
pub fn all<V, P: Promises<V>>(promises: P) -> Promise<V> {
    promises.all()
}

/// Returns a promise of the result of each promise, in their order; otherwise like [`all`].
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, Promise, all_settled, run, try_call};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let number = try_call(async { "x".parse::<i32>() });
///         let (number, text) = all_settled((number, Promise::resolved("y"))).await.unwrap();
///         assert!(number.is_err());
///         assert_eq!(text.unwrap(), "y");
///     })
/// }
/// ```
pub fn all_settled<V, P: Promises<V>>(promises: P) -> Promise<P::Results> {
    promises.all_settled()
}

/// Returns a promise that is settled like the first promise to be settled; otherwise like [`all`].
/// Without promises it stays pending.
///
/// The operations behind the other promises continue.
///
/// In plain Rust: `select`, which drops the losers.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, race, run, timers::promises::set_timeout};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let first = race([set_timeout(50, "slow"), set_timeout(1, "fast")]);
///         assert_eq!(first.await.unwrap(), "fast");
///     })
/// }
/// ```
pub fn race<T: Clone + 'static>(promises: impl IntoIterator<Item = Promise<T>>) -> Promise<T> {
    let deferred = Deferred::new();
    let mut members = Members::of("race");
    for promise in promises {
        members.add(&promise);
        let deferred = deferred.clone();
        promise.react(move |result| deferred.settle(result));
    }
    members.settle(deferred.promise())
}

/// Returns a promise of the first value. If all promises are rejected, the reason is an
/// [`AggregateError`]; otherwise like [`all`].
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Error, Exit, Promise, any, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let no = Promise::rejected(Error::range_error("no"));
///         let first = any([no, Promise::resolved("yes")]);
///         assert_eq!(first.await.unwrap(), "yes");
///     })
/// }
/// ```
pub fn any<T: Clone + 'static>(promises: impl IntoIterator<Item = Promise<T>>) -> Promise<T> {
    let deferred = Deferred::new();
    let fulfilled = deferred.clone();
    let gathered = Gathered::new(move |reasons| fulfilled.reject(AggregateError { reasons }));
    let mut members = Members::of("any");
    for promise in promises {
        members.add(&promise);
        let (place, deferred) = (gathered.place(), deferred.clone());
        promise.react(move |result| match result {
            Ok(value) => deferred.resolve(value),
            Err(reason) => place(reason),
        });
    }
    gathered.complete();
    members.settle(deferred.promise())
}

/// The argument of [`all`] and [`all_settled`]: promises of one type, whose values `V` are a
/// vector, or a tuple of up to eight promises of any types, whose values are a tuple.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Promise, Promises, all, run};
///
/// /// Waits for any promises, and logs when all of them are fulfilled.
/// fn all_logged<V: Clone + 'static>(promises: impl Promises<V>) -> Promise<V> {
///     all(promises).then(|values| {
///         println!("all there");
///         values
///     })
/// }
///
/// fn main() {
///     run(async {
///         let numbers = [1, 2].map(Promise::resolved);
///         assert_eq!(all_logged(numbers).await.unwrap(), [1, 2]);
///         let mixed = (Promise::resolved(1), Promise::resolved("two"));
///         assert_eq!(all_logged(mixed).await.unwrap(), (1, "two"));
///     })
///     .into_output()
///     .unwrap();
/// }
/// ```
pub trait Promises<V> {
    /// The collected results of all promises.
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
        gather(self, Members::of("all"), |result| result)
    }

    fn all_settled(self) -> Promise<Self::Results> {
        gather(self, Members::of("all_settled"), Ok)
    }
}

fn gather<T: Clone + 'static, U: Clone + 'static>(
    promises: impl IntoIterator<Item = Promise<T>>,
    mut members: Members,
    convert: fn(Result<T, Reason>) -> Result<U, Reason>,
) -> Promise<Vec<U>> {
    let deferred = Deferred::new();
    let full = deferred.clone();
    let gathered = Gathered::new(move |values| full.resolve(values));
    for promise in promises {
        members.add(&promise);
        let (place, deferred) = (gathered.place(), deferred.clone());
        promise.react(move |result| match convert(result) {
            Ok(value) => place(value),
            Err(reason) => deferred.settle(Err(reason)),
        });
    }
    gathered.complete();
    members.settle(deferred.promise())
}

/// The promises that one promise combines, as a report shows them: the tasks that settle them.
struct Members(Combined);

impl Members {
    /// `how` is the name of the function that combines them.
    fn of(how: &'static str) -> Self {
        let tasks = Vec::<Id>::new();
        Self(Combined { how, tasks })
    }

    fn add<T>(&mut self, member: &Promise<T>) {
        self.0.tasks.extend(member.task());
    }

    /// Notes for reports what settles the combined promise.
    fn settle<T>(self, promise: Promise<T>) -> Promise<T> {
        promise.comes_from(Source::Combined(Rc::new(self.0)));
        promise
    }
}

type WhenFull<T> = Box<dyn FnOnce(Vec<T>)>;

/// Slots that are filled in any order. The last one to be filled runs the callback.
struct Gathered<T> {
    places: RefCell<Vec<Option<T>>>,
    /// The number of empty slots, plus one until all slots are created.
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

    /// Adds a slot; returns the function that fills it.
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

/// The error of [`any`]: every promise was rejected.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{AggregateError, Error, Promise, any, run};
///
/// fn main() {
///     run(async {
///         let failed = ["a", "b"].map(|text| Promise::<()>::rejected(Error::new(text)));
///         let reason = any(failed).await.unwrap_err();
///         let error: &AggregateError = reason.downcast_ref().unwrap();
///         assert_eq!(error.reasons()[1].to_string(), "b");
///     })
///     .into_output()
///     .unwrap();
/// }
/// ```
#[derive(Clone)]
pub struct AggregateError {
    reasons: Vec<Reason>,
}

impl AggregateError {
    /// Returns `AggregateError`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        "AggregateError"
    }

    /// The reasons, in the order of the promises. Node's `errors`.
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

/// One line, as [`Display`](fmt::Display) writes it; the reasons with `{:#?}`.
impl fmt::Debug for AggregateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return fmt::Display::fmt(self, f);
        }
        let mut shown = f.debug_struct("AggregateError");
        shown.field("reasons", &self.reasons).finish()
    }
}

impl Error for AggregateError {}
