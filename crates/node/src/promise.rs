//! Promises: values that arrive later, with the tick counts of JavaScript.

mod awaited;
mod deferred;
mod function;
mod handled;
mod origin;

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::panic::Location;
use std::rc::Rc;

pub use self::awaited::Awaited;
pub use self::deferred::Deferred;
pub use self::function::{call, call_returning, catch, try_call};
pub use self::handled::Handled;
use self::origin::{Origin, PROMISE};
use super::context::Node;
use super::reason::Reason;
use super::rejections::Rejection;
use super::site::Site;
use super::thenable::PromiseLike;
use crate::async_hooks::{Capture, Work};
use phaseloop::extension::Call;
use phaseloop::extension::drop_flat;
use phaseloop::extension::frame;
use phaseloop::extension::{Source, WaitKey};
use phaseloop::task::Id;

/// A value that arrives later, or the reason why it does not. Clones refer to the same promise.
///
/// Unlike a future it does not have to be polled: the operation behind it continues by itself, even
/// when the promise is dropped. Any number of tasks and closures may wait for it, by `await` or by
/// [`then`](Self::then). They run one microtask after it is settled, in the order in which they
/// were registered.
///
/// Awaiting a settled promise costs one microtask as well, as JavaScript's `await` does and Rust's
/// does not; see [the table](super#the-cost-of-waiting) of the module.
///
/// A rejected promise without a handler is reported; see
/// [`process::on_unhandled_rejection`](super::process::on_unhandled_rejection).
///
/// In plain Rust: a future, or a [`JoinHandle`](phaseloop::JoinHandle).
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, Promise, call, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let answer = call(async { 6 * 7 });
///         answer.then(|answer| println!("{answer}"));
///         assert_eq!(answer.await.unwrap(), 42);
///         let failed = Promise::<u8>::rejected(phaseloop_node::Reason::new("no"));
///         assert_eq!(failed.await.unwrap_err().to_string(), "no");
///     })
/// }
/// ```
pub struct Promise<T>(Rc<PromiseState<T>>);

struct PromiseState<T> {
    node: Rc<Node>,
    state: RefCell<State<T>>,
    /// Whether the promise was ever awaited or has a handler.
    is_handled: Cell<bool>,
    /// How often a [`Deferred`] has resolved the promise.
    resolutions: Cell<u32>,
    /// The rejection that is reported if the promise is not handled.
    rejection: OnceCell<Rc<Rejection>>,
    /// [`drop_flat`] for the state. It is a field because `drop_flat` needs `T: 'static`, which
    /// `Drop` cannot require.
    drop_state: fn(State<T>),
    /// What was around its making, if there was anything.
    origin: Option<Box<Origin>>,
    /// The tasks that settle the promise, as far as they are known; for reports.
    source: Cell<Source>,
    /// The line that made the promise.
    site: Site,
}

enum State<T> {
    Pending(Vec<Reaction<T>>),
    Settled(Result<T, Reason>),
}

enum Reaction<T> {
    /// A closure that a microtask calls.
    Call(Box<dyn FnOnce(Result<T, Reason>)>),
    /// A task waits; its waker is in the list of waits.
    Wake(WaitKey),
    /// Calls the closure inside of what settles the promise.
    Now(Box<dyn FnOnce(Result<T, Reason>)>),
}

/// A pending promise owns the closures that wait for it, which may own further promises. A long
/// chain of them must not overflow the stack when it is dropped.
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
    /// Makes a promise. The one with the id `parent` has caused it, if there is one.
    #[track_caller]
    fn pending(node: Rc<Node>, parent: Option<u64>) -> Rc<Self> {
        Rc::new(Self {
            node,
            state: RefCell::new(State::Pending(Vec::new())),
            is_handled: Cell::new(false),
            resolutions: Cell::new(0),
            rejection: OnceCell::new(),
            drop_state: drop_flat,
            origin: Origin::of_now(parent),
            source: Cell::default(),
            site: Location::caller(),
        })
    }
}

impl<T> PromiseState<T> {
    fn is_settled(&self) -> bool {
        matches!(&*self.state.borrow(), State::Settled(_))
    }

    /// Adds a reaction to a pending promise.
    fn add(&self, reaction: Reaction<T>) {
        if let State::Pending(reactions) = &mut *self.state.borrow_mut() {
            // Most promises get one reaction.
            if reactions.is_empty() {
                reactions.reserve_exact(1);
            }
            reactions.push(reaction);
        }
    }

    /// Returns the tasks that settle the promise, as far as they are known.
    fn source(&self) -> Source {
        let source = self.source.take();
        self.source.set(source.clone());
        source
    }

    /// Removes a task that has stopped waiting.
    fn remove(&self, wait: WaitKey) {
        if self.is_settled() {
            return;
        }
        if let State::Pending(reactions) = &mut *self.state.borrow_mut() {
            let is_it = |reaction: &Reaction<T>| match reaction {
                Reaction::Wake(other) => *other == wait,
                Reaction::Call(_) | Reaction::Now(_) => false,
            };
            // The search begins at the end: the task that began last often stops first.
            if let Some(place) = reactions.iter().rposition(is_it) {
                reactions.remove(place);
            }
        }
    }
}

impl<T: Clone + 'static> Promise<T> {
    /// Creates a promise that `executor` settles, now or later, through the [`Deferred`] that it
    /// receives: JavaScript's `new Promise(..)`.
    ///
    /// `executor` is called at once. Its panic rejects the promise.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn new(executor: impl FnOnce(Deferred<T>)) -> Self {
        let deferred = Deferred::new();
        let promise = deferred.promise();
        if let Err(reason) = catch(|| executor(deferred.clone())) {
            deferred.settle(Err(reason));
        }
        promise
    }

    /// Creates a fulfilled promise.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    #[track_caller]
    pub fn resolved(value: T) -> Self {
        Self::settled(Ok(value))
    }

    /// Creates a rejected promise from what [`throw`](crate::throw) takes: an error, a text, a
    /// [`Reason`]. JavaScript: `Promise.reject(reason)`.
    ///
    /// # Panics
    ///
    /// When no loop runs on this thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, Promise, run};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let failed = Promise::<()>::rejected("no");
    ///         assert_eq!(failed.await.unwrap_err().to_string(), "no");
    ///     })
    /// }
    /// ```
    #[track_caller]
    pub fn rejected(reason: impl Into<Box<dyn std::error::Error>>) -> Self {
        Self::settled(Err(Reason::new(reason)))
    }

    #[track_caller]
    fn settled(result: Result<T, Reason>) -> Self {
        let promise = Self::pending();
        promise.settle(result);
        promise
    }

    #[track_caller]
    fn pending() -> Self {
        Self(PromiseState::pending(Node::current(), None))
    }

    /// Returns whether the promise is fulfilled or rejected.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.0.is_settled()
    }

    /// Calls `f` with the value, one microtask after the promise is fulfilled. Returns a promise of
    /// what `f` returns.
    ///
    /// A rejection also rejects the returned promise, without a call of `f`. A panic of `f` rejects
    /// it too.
    #[track_caller]
    pub fn then<U: Clone + 'static>(&self, f: impl FnOnce(T) -> U + 'static) -> Promise<U> {
        self.chain(move |result, next| next.settle_with(|| Ok(f(result?))))
    }

    /// Calls `f`, which returns a promise or a [`Thenable`](super::Thenable), with the value. The
    /// returned promise adopts its result: two microtasks later than a plain value for a promise,
    /// one later for a thenable.
    #[track_caller]
    pub fn and_then<P: PromiseLike>(&self, f: impl FnOnce(T) -> P + 'static) -> Promise<P::Output> {
        self.chain(
            move |result, next| match catch(|| result.map(f)).and_then(|inner| inner) {
                Ok(inner) => next.adopt(inner),
                Err(reason) => next.settle(Err(reason)),
            },
        )
    }

    /// Calls `f` with the reason of a rejection: JavaScript's `catch`. Returns a promise of what
    /// `f` returns. A value also fulfils the returned promise, without a call of `f`.
    #[track_caller]
    pub fn catch(&self, f: impl FnOnce(Reason) -> T + 'static) -> Self {
        self.chain(move |result, next| next.settle_with(|| Ok(result.unwrap_or_else(f))))
    }

    /// Calls `f` with the value or with the reason: JavaScript's `then` with two functions. Returns
    /// a promise of what `f` returns.
    #[track_caller]
    pub fn then_result<U: Clone + 'static>(
        &self,
        f: impl FnOnce(Result<T, Reason>) -> U + 'static,
    ) -> Promise<U> {
        self.chain(move |result, next| next.settle_with(|| Ok(f(result))))
    }

    /// Calls `f` when the promise is settled. The returned promise has the same value or reason,
    /// three microtasks later.
    #[track_caller]
    pub fn finally(&self, f: impl FnOnce() + 'static) -> Self {
        self.chain(move |result, next| match catch(f) {
            Ok(()) => {
                let inner = Promise::resolved(()).chain(move |_, inner| inner.settle(result));
                next.adopt(inner);
            }
            Err(reason) => next.settle(Err(reason)),
        })
    }

    #[track_caller]
    fn chain<U: Clone + 'static>(
        &self,
        f: impl FnOnce(Result<T, Reason>, &Deferred<U>) + 'static,
    ) -> Promise<U> {
        let next = Deferred::new_on(self.0.node.clone(), self.id());
        let promise = next.promise();
        promise.comes_from(self.0.source());
        let context = Origin::context(promise.0.origin.as_deref());
        self.react_in(context, move |result| f(result, &next));
        promise
    }

    /// Queues a microtask with the result, as soon as the promise is settled.
    pub(super) fn react(&self, f: impl FnOnce(Result<T, Reason>) + 'static) {
        let context = (!frame::is_plain()).then(|| {
            let context = Capture::of(PROMISE, self.id());
            Capture {
                work: context.work.map(Work::of_hidden_promise),
                ..context
            }
        });
        self.react_in(context, f);
    }

    /// Calls `f` with the result inside of what settles the promise; at once if it is settled.
    pub(super) fn on_settled(&self, f: impl FnOnce(Result<T, Reason>) + 'static) {
        self.set_handled();
        match self.result() {
            Some(settled) => f(settled),
            None => self.0.add(Reaction::Now(Box::new(f))),
        }
    }

    fn react_in(&self, context: Option<Capture>, f: impl FnOnce(Result<T, Reason>) + 'static) {
        self.set_handled();
        let Some(context) = context else {
            return match self.result() {
                Some(settled) => self.queue(move || f(settled)),
                None => self.0.add(Reaction::Call(Box::new(f))),
            };
        };
        let f = move |result| context.run(|| f(result));
        match self.result() {
            Some(settled) => self.queue(move || f(settled)),
            None => self.0.add(Reaction::Call(Box::new(f))),
        }
    }

    /// The result, if the promise is settled. The clone may run user code under this borrow; that
    /// is safe, since a settled state never changes.
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
        Origin::settled(self.0.origin.as_deref());
        if let (Err(reason), false) = (&result, self.0.is_handled.get()) {
            let ids = self.0.origin.as_ref().map(|origin| origin.ids);
            let rejections = &self.0.node.rejections;
            let rejection = rejections.add(&self.0.node, reason.clone(), ids, self.0.site);
            let first = self.0.rejection.set(rejection);
            debug_assert!(first.is_ok(), "a promise is settled once");
        }
        for reaction in reactions {
            match reaction {
                Reaction::Call(f) => {
                    let result = result.clone();
                    self.queue(move || f(result));
                }
                Reaction::Now(f) => f(result.clone()),
                Reaction::Wake(wait) => {
                    if let Some(waker) = self.0.node.waits.take_waker(wait) {
                        waker.wake();
                    }
                }
            }
        }
    }

    /// Queues the job that asks a thenable or another promise how to settle this one.
    fn queue_job(&self, job: impl FnOnce() + 'static) {
        match Origin::context(self.0.origin.as_deref()) {
            Some(context) => self.queue(move || context.run(job)),
            None => self.queue(job),
        }
    }

    fn queue(&self, microtask: impl FnOnce() + 'static) {
        if let Some(core) = self.0.node.core() {
            core.push_microtask(Call::new(microtask));
        }
    }
}

impl<T> Promise<T> {
    /// Returns the id of the promise, if hooks are in use.
    fn id(&self) -> Option<u64> {
        self.0.origin.as_ref().map(|origin| origin.id())
    }

    /// Notes which tasks settle the promise, for reports.
    pub(super) fn comes_from(&self, source: Source) {
        self.0.source.set(source);
    }

    /// Returns the task that settles the promise, if it is known.
    pub(super) fn task(&self) -> Option<Id> {
        match self.0.source() {
            Source::Task(id) => Some(id),
            _ => None,
        }
    }

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
