//! Promises: values that arrive later, with the tick counts of JavaScript's.

mod awaited;

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

pub use self::awaited::Awaited;
use super::context::Node;
use super::error::Error;
use super::process::ExitRequest;
use super::reason::Reason;
use super::rejections::Rejection;
use super::report;
use super::thenable::PromiseLike;
use crate::raw::call::Call;
use crate::raw::nesting::drop_flat;

/// A value that arrives later, or the reason why it does not. Clones are the same promise.
///
/// Unlike a future it needs nobody to poll it: what it stands for goes on by itself, also when the promise is dropped. Any
/// number may wait for it, by `await` or by [`then`](Self::then); they are told in the order in which they began to (N18),
/// one microtask after it is settled. Awaiting a promise that is settled already costs one microtask as well: this is
/// JavaScript's `await`, not Rust's. See [the table](super#what-waiting-costs) in the module's documentation.
///
/// A rejected promise that nobody waits for is reported; see
/// [`process::on_unhandled_rejection`](super::process::on_unhandled_rejection).
///
/// In plain Rust: a future, or a [`JoinHandle`](crate::JoinHandle).
///
/// # Examples
///
/// ```
/// use phaseloop::node::{Promise, call, run};
///
/// run(async {
///     let answer = call(async { 6 * 7 });
///     answer.then(|answer| println!("{answer}"));
///     assert_eq!(answer.await.unwrap(), 42);
///     let failed = Promise::<u8>::rejected(phaseloop::node::Reason::new("no"));
///     assert_eq!(failed.await.unwrap_err().to_string(), "no");
/// });
/// ```
pub struct Promise<T>(Rc<PromiseState<T>>);

struct PromiseState<T> {
    node: Rc<Node>,
    state: RefCell<State<T>>,
    /// Whether somebody waits or has waited.
    is_handled: Cell<bool>,
    /// What is reported if nobody does.
    rejection: OnceCell<Rc<Rejection>>,
    /// [`drop_flat`] for the state; a field, since only the promise's maker knows that `T` borrows
    /// nothing.
    drop_state: fn(State<T>),
}

enum State<T> {
    Pending(Vec<Reaction<T>>),
    Settled(Result<T, Reason>),
}

enum Reaction<T> {
    /// Called by a microtask.
    Call(Box<dyn FnOnce(Result<T, Reason>)>),
    /// Wakes a task: a microtask as well. Empty if the task has stopped waiting.
    Wake(Rc<RefCell<Option<Waker>>>),
}

/// A pending promise owns those that wait for it, and these own those that wait for them.
impl<T> Drop for PromiseState<T> {
    fn drop(&mut self) {
        let state = std::mem::replace(self.state.get_mut(), State::Pending(Vec::new()));
        let owns_nothing = match &state {
            State::Pending(reactions) => reactions.is_empty(),
            State::Settled(result) => result.is_ok() && !std::mem::needs_drop::<T>(),
        };
        if !owns_nothing {
            (self.drop_state)(state);
        }
    }
}

impl<T: 'static> PromiseState<T> {
    fn pending(node: Rc<Node>) -> Rc<Self> {
        Rc::new(Self {
            node,
            state: RefCell::new(State::Pending(Vec::new())),
            is_handled: Cell::new(false),
            rejection: OnceCell::new(),
            drop_state: drop_flat,
        })
    }
}

impl<T> PromiseState<T> {
    fn is_settled(&self) -> bool {
        matches!(&*self.state.borrow(), State::Settled(_))
    }

    /// Adds what is to happen when it is settled; it is not yet.
    fn add(&self, reaction: Reaction<T>) {
        if let State::Pending(reactions) = &mut *self.state.borrow_mut() {
            reactions.push(reaction);
        }
    }

    /// Forgets a task that has stopped waiting.
    fn remove(&self, waker: &Rc<RefCell<Option<Waker>>>) {
        if self.is_settled() {
            return;
        }
        if let State::Pending(reactions) = &mut *self.state.borrow_mut() {
            let is_it = |reaction: &Reaction<T>| match reaction {
                Reaction::Wake(other) => Rc::ptr_eq(other, waker),
                Reaction::Call(_) => false,
            };
            // Who began last often stops first.
            if let Some(place) = reactions.iter().rposition(is_it) {
                reactions.remove(place);
            }
        }
    }
}

impl<T: Clone + 'static> Promise<T> {
    /// A promise that `executor` settles, now or later, through the [`Deferred`] it is given. It is called at once (N19); its
    /// panic rejects the promise. JavaScript's `new Promise(..)`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub fn new(executor: impl FnOnce(Deferred<T>)) -> Self {
        let deferred = Deferred::new();
        let promise = deferred.promise();
        if let Err(reason) = catch(|| executor(deferred.clone())) {
            deferred.reject(reason);
        }
        promise
    }

    /// A promise that is fulfilled.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub fn resolved(value: T) -> Self {
        Self::settled(Ok(value))
    }

    /// A promise that is rejected.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    pub fn rejected(reason: impl Into<Reason>) -> Self {
        Self::settled(Err(reason.into()))
    }

    fn settled(result: Result<T, Reason>) -> Self {
        let promise = Self::pending();
        promise.settle(result);
        promise
    }

    fn pending() -> Self {
        Self(PromiseState::pending(Node::current()))
    }

    /// Whether the promise is fulfilled or rejected.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.0.is_settled()
    }

    /// Calls `f` with the value, one microtask after it is there (N11); the new promise has what `f` returns. A
    /// rejection passes by, to the new promise; a panic of `f` rejects it.
    pub fn then<U: Clone + 'static>(&self, f: impl FnOnce(T) -> U + 'static) -> Promise<U> {
        self.chain(move |result, next| next.settle_with(|| Ok(f(result?))))
    }

    /// Calls `f`, which returns a promise or a [`Thenable`](super::Thenable): the new promise takes over what becomes of
    /// it, two microtasks later than a plain value would, or one (N16).
    pub fn and_then<P: PromiseLike>(&self, f: impl FnOnce(T) -> P + 'static) -> Promise<P::Output> {
        self.chain(
            move |result, next| match catch(|| result.map(f)).and_then(|inner| inner) {
                Ok(inner) => next.adopt(inner),
                Err(reason) => next.reject(reason),
            },
        )
    }

    /// Calls `f` with the reason of a rejection; the new promise has what `f` returns. A value passes by. JavaScript's
    /// `catch`.
    pub fn catch(&self, f: impl FnOnce(Reason) -> T + 'static) -> Self {
        self.chain(move |result, next| next.settle_with(|| Ok(result.unwrap_or_else(f))))
    }

    /// Calls `f` with the value or with the reason; the new promise has what `f` returns. JavaScript's `then` with two
    /// functions.
    pub fn then_or<U: Clone + 'static>(
        &self,
        f: impl FnOnce(Result<T, Reason>) -> U + 'static,
    ) -> Promise<U> {
        self.chain(move |result, next| next.settle_with(|| Ok(f(result))))
    }

    /// Calls `f` when the promise is settled; the new promise has the same value or reason, three microtasks later (N21).
    pub fn finally(&self, f: impl FnOnce() + 'static) -> Self {
        self.chain(move |result, next| match catch(f) {
            Ok(()) => {
                let inner = Promise::resolved(()).chain(move |_, inner| inner.settle(result));
                next.adopt(inner);
            }
            Err(reason) => next.reject(reason),
        })
    }

    fn chain<U: Clone + 'static>(
        &self,
        f: impl FnOnce(Result<T, Reason>, &Deferred<U>) + 'static,
    ) -> Promise<U> {
        let next = Deferred::new_on(self.0.node.clone());
        let promise = next.promise();
        self.react(move |result| f(result, &next));
        promise
    }

    /// Queues a microtask with the result as soon as there is one.
    pub(super) fn react(&self, f: impl FnOnce(Result<T, Reason>) + 'static) {
        self.set_handled();
        match self.result() {
            Some(settled) => self.queue(move || f(settled)),
            None => self.0.add(Reaction::Call(Box::new(f))),
        }
    }

    /// What it is settled with. The clone is anybody's code, under a borrow of what never changes any more.
    fn result(&self) -> Option<Result<T, Reason>> {
        match &*self.0.state.borrow() {
            State::Settled(result) => Some(result.clone()),
            State::Pending(_) => None,
        }
    }

    fn settle(&self, result: Result<T, Reason>) {
        if self.is_settled() {
            return;
        }
        let kept = State::Settled(result.clone());
        let reactions = match self.0.state.replace(kept) {
            State::Pending(reactions) => reactions,
            State::Settled(_) => unreachable!("the clone of a value has settled its promise"),
        };
        if let (Err(reason), false) = (&result, self.0.is_handled.get()) {
            let rejection = self.0.node.rejections.add(&self.0.node, reason.clone());
            let first = self.0.rejection.set(rejection);
            debug_assert!(first.is_ok(), "a promise is settled once");
        }
        for reaction in reactions {
            match reaction {
                Reaction::Call(f) => {
                    let result = result.clone();
                    self.queue(move || f(result));
                }
                Reaction::Wake(waker) => {
                    let waker = waker.take();
                    if let Some(waker) = waker {
                        waker.wake();
                    }
                }
            }
        }
    }

    fn queue(&self, microtask: impl FnOnce() + 'static) {
        if let Some(core) = self.0.node.core() {
            core.lane.push_call(Call::new(microtask));
        }
    }
}

impl<T> Promise<T> {
    fn set_handled(&self) {
        if !self.0.is_handled.replace(true) {
            if let Some(rejection) = self.0.rejection.get() {
                self.0.node.rejections.handled(&self.0.node, rejection);
            }
        }
    }
}

impl<T> Clone for Promise<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> fmt::Debug for Promise<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &*self.0.state.borrow() {
            State::Pending(_) => "Promise(pending)",
            State::Settled(Ok(_)) => "Promise(fulfilled)",
            State::Settled(Err(_)) => "Promise(rejected)",
        })
    }
}

/// The other end of a promise: settles it, once. Clones are the same.
///
/// In plain Rust: a one-shot channel.
pub struct Deferred<T> {
    promise: Promise<T>,
    /// Whether its fate is decided; it may still be pending then, on another promise.
    is_resolved: Rc<Cell<bool>>,
}

impl<T: Clone + 'static> Deferred<T> {
    /// A promise that is pending until this settles it.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[must_use]
    pub fn new() -> Self {
        Self::new_on(Node::current())
    }

    fn new_on(node: Rc<Node>) -> Self {
        Self {
            promise: Promise(PromiseState::pending(node)),
            is_resolved: Rc::new(Cell::new(false)),
        }
    }

    /// The promise.
    #[must_use]
    pub fn promise(&self) -> Promise<T> {
        self.promise.clone()
    }

    /// Fulfils the promise. Nobody is called before the microtasks run. Without effect if its fate is decided.
    pub fn resolve(&self, value: T) {
        self.settle(Ok(value));
    }

    /// Rejects the promise. Without effect if its fate is decided.
    pub fn reject(&self, reason: impl Into<Reason>) {
        self.settle(Err(reason.into()));
    }

    /// Leaves the promise to become what `other` becomes: two microtasks later for a promise, one for a
    /// [`Thenable`](super::Thenable). JavaScript's `resolve(promise)` (N16). Without effect if its fate is decided.
    pub fn adopt(&self, other: impl PromiseLike<Output = T>) {
        if !self.is_resolved.replace(true) {
            other.settle(Self {
                promise: self.promise(),
                is_resolved: Rc::default(),
            });
        }
    }

    /// Settles it as another promise is, after a microtask.
    pub(super) fn settle_as(self, other: Promise<T>) {
        if Rc::ptr_eq(&self.promise.0, &other.0) {
            return self.reject(Error::chaining_cycle());
        }
        let promise = self.promise;
        promise
            .clone()
            .queue(move || other.react(move |result| promise.settle(result)));
    }

    /// Has `then` settle it, by a microtask; its panic rejects it.
    pub(super) fn settle_by(self, then: impl FnOnce(Self) + 'static) {
        self.promise().queue(move || {
            if let Err(reason) = catch(|| then(self.clone())) {
                self.reject(reason);
            }
        });
    }

    pub(super) fn settle(&self, result: Result<T, Reason>) {
        if !self.is_resolved.replace(true) {
            self.promise.settle(result);
        }
    }

    /// Settles it with what `f` returns; a panic of `f` rejects it.
    fn settle_with(&self, f: impl FnOnce() -> Result<T, Reason>) {
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

/// Calls `f`, and catches what it [throws](super::throw), or its panic: JavaScript's `try` and `catch`.
///
/// The end of the program by [`process::exit`](super::process::exit) is not caught.
///
/// In plain Rust: `match f() { Ok(..) => .., Err(..) => .. }`.
///
/// # Errors
///
/// What was thrown.
///
/// # Examples
///
/// ```
/// use phaseloop::node::{Error, catch, throw};
///
/// let caught = catch(|| throw(Error::range_error("too far").coded("ERR_OUT_OF_RANGE")));
/// let error = caught.unwrap_err();
/// assert_eq!(error.to_string(), "too far");
/// assert_eq!((error.name(), error.code()), ("RangeError", Some("ERR_OUT_OF_RANGE")));
/// assert_eq!(catch(|| 6 * 7).unwrap(), 42);
/// ```
pub fn catch<R>(f: impl FnOnce() -> R) -> Result<R, Reason> {
    let catching = report::Catching::begin();
    let caught = catch_unwind(AssertUnwindSafe(f));
    drop(catching);
    caught.map_err(|payload| {
        if payload.is::<ExitRequest>() {
            resume_unwind(payload);
        }
        Reason::from_panic(payload)
    })
}

/// Calls an async function: polls `future` at once, up to its first wait, inside this call (N19).
///
/// It goes on by itself; the promise has its output. A panic, or [`throw`](super::throw), rejects the promise.
///
/// In plain Rust: [`spawn`](crate::spawn), which first polls in the microtask lane.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::node::{call, run};
/// use std::{cell::Cell, rc::Rc};
///
/// run(async {
///     let called = Rc::new(Cell::new(false));
///     let mark = called.clone();
///     let promise = call(async move { mark.set(true) });
///     assert!(called.get(), "before anybody awaits it");
///     promise.await.unwrap();
/// });
/// ```
#[track_caller]
pub fn call<F>(future: F) -> Promise<F::Output>
where
    F: Future + 'static,
    F::Output: Clone + 'static,
{
    start(future, Deferred::settle, Ok)
}

/// The same for a function that may fail: an error rejects the promise.
///
/// # Panics
///
/// As [`call`].
#[track_caller]
pub fn try_call<F, T, E>(future: F) -> Promise<T>
where
    F: Future<Output = Result<T, E>> + 'static,
    T: Clone + 'static,
    E: Into<Reason> + 'static,
{
    start(future, Deferred::settle, |result| {
        result.map_err(Into::into)
    })
}

/// Calls an async function that returns a promise or a [`Thenable`](super::Thenable) without awaiting it: what becomes of
/// it becomes of the function's own promise, two microtasks later than a plain value would, or one (N15).
///
/// # Panics
///
/// As [`call`].
#[track_caller]
pub fn call_returning<F>(future: F) -> Promise<<F::Output as PromiseLike>::Output>
where
    F: Future + 'static,
    F::Output: PromiseLike + 'static,
{
    let adopt = |deferred: &Deferred<_>, result: Result<F::Output, Reason>| match result {
        Ok(promise) => deferred.adopt(promise),
        Err(reason) => deferred.reject(reason),
    };
    start(future, adopt, Ok)
}

#[track_caller]
fn start<F, T, U>(
    future: F,
    end: impl FnOnce(&Deferred<T>, Result<U, Reason>) + 'static,
    convert: impl FnOnce(F::Output) -> Result<U, Reason> + 'static,
) -> Promise<T>
where
    F: Future + 'static,
    T: Clone + 'static,
    U: 'static,
{
    let node = Node::current();
    let deferred = Deferred::new_on(node.clone());
    let promise = deferred.promise();
    if let Some(core) = node.core() {
        let function = async move {
            let result = Catching(Box::pin(future)).await;
            end(&deferred, result.and_then(convert));
        };
        drop(core.spawn_eager(function, Location::caller()));
        if core.panic_policy.program_has_exited() {
            // The function has ended the program; its task has kept that to itself.
            resume_unwind(Box::new(ExitRequest));
        }
    }
    promise
}

/// A future whose panic is a reason.
struct Catching<F>(Pin<Box<F>>);

impl<F: Future> Future for Catching<F> {
    type Output = Result<F::Output, Reason>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let catching = report::Catching::begin();
        let polled = catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx)));
        drop(catching);
        match polled {
            Ok(poll) => poll.map(Ok),
            Err(payload) if payload.is::<ExitRequest>() => {
                // A task keeps its panics; this one is none of it. The lanes go, and with them the drain ends.
                Node::current().drop_lanes();
                Poll::Pending
            }
            Err(payload) => Poll::Ready(Err(Reason::from_panic(payload))),
        }
    }
}
