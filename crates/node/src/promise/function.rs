//! Calls of functions: `catch`, and async functions that return a promise.

use std::future::Future;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use super::origin::Origin;
use super::{Deferred, Promise};
use crate::context::Node;
use crate::process::ExitRequest;
use crate::reason::Reason;
use crate::report;
use crate::thenable::PromiseLike;
use phaseloop::extension::Source;

/// Calls `f` and catches what it [throws](crate::throw), or its panic: JavaScript's `try` and
/// `catch`.
///
/// [`process::exit`](crate::process::exit) is not caught.
///
/// In plain Rust: `match f() { Ok(..) => .., Err(..) => .. }`.
///
/// # Errors
///
/// The error that `f` threw, or its panic.
///
/// # Panics
///
/// [`process::exit`](crate::process::exit) unwinds through this call.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Error, catch, throw};
///
/// fn main() {
///     let caught = catch(|| throw(Error::range_error("too far").coded("ERR_OUT_OF_RANGE")));
///     let error = caught.unwrap_err();
///     assert_eq!(error.to_string(), "too far");
///     assert_eq!((error.name(), error.code()), ("RangeError", Some("ERR_OUT_OF_RANGE")));
///     assert_eq!(catch(|| 6 * 7).unwrap(), 42);
/// }
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

/// Calls an async function: polls `future` at once, inside this call, up to its first wait.
///
/// The future continues by itself, and its output fulfils the returned promise. A panic or
/// [`throw`](crate::throw) rejects the promise.
///
/// In plain Rust: [`spawn`](phaseloop::spawn), which first polls in the microtask lane.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, call, run};
/// use std::{cell::Cell, rc::Rc};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let called = Rc::new(Cell::new(false));
///         let mark = called.clone();
///         let promise = call(async move { mark.set(true) });
///         assert!(called.get(), "before it is awaited");
///         promise.await.unwrap();
///     })
/// }
/// ```
#[track_caller]
pub fn call<F>(future: F) -> Promise<F::Output>
where
    F: Future + 'static,
    F::Output: Clone + 'static,
{
    start(future, Deferred::settle, Ok)
}

/// Calls an async function that may fail, like [`call`]. An error rejects the promise.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, try_call};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let parsed = try_call(async { "x".parse::<i32>() });
///         assert!(parsed.await.is_err());
///     })
/// }
/// ```
#[track_caller]
pub fn try_call<F, T, E>(future: F) -> Promise<T>
where
    F: Future<Output = Result<T, E>> + 'static,
    T: Clone + 'static,
    E: Into<Box<dyn std::error::Error>> + 'static,
{
    start(future, Deferred::settle, |result| {
        result.map_err(Reason::new)
    })
}

/// Calls an async function that returns a promise or a [`Thenable`](crate::Thenable) without
/// awaiting it, like [`call`].
///
/// The promise of the function adopts the returned one: two microtasks later than a plain value for
/// a promise, one later for a thenable.
///
/// # Panics
///
/// When no loop runs on this thread.
#[track_caller]
pub fn call_returning<F>(future: F) -> Promise<<F::Output as PromiseLike>::Output>
where
    F: Future + 'static,
    F::Output: PromiseLike + 'static,
{
    let adopt = |deferred: &Deferred<_>, result: Result<F::Output, Reason>| match result {
        Ok(promise) => deferred.adopt(promise),
        Err(reason) => deferred.settle(Err(reason)),
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
    let deferred = Deferred::new_on(node.clone(), None);
    let promise = deferred.promise();
    let id = promise.id();
    let work = Origin::work(promise.0.origin.as_deref());
    if let Some(core) = node.core() {
        let function = async move {
            // What continues after the wait for a future that is no promise.
            if let (Some(work), Some(core)) = (work, node.core()) {
                core.set_next_work(Box::new(work));
            }
            let future = Box::pin(future);
            let result = Catching { future, id }.await;
            end(&deferred, result.and_then(convert));
        };
        let task = core.spawn_eager(function, Location::caller());
        promise.comes_from(Source::Task(task.id()));
        drop(task);
        if core.program_has_exited() {
            // The function has called `process::exit`. Its task has swallowed the unwinding, so it
            // starts again here.
            resume_unwind(Box::new(ExitRequest));
        }
    }
    promise
}

/// A future that returns its panic as a reason.
struct Catching<F> {
    future: Pin<Box<F>>,
    /// The id of the function's promise, if hooks are in use.
    id: Option<u64>,
}

impl<F: Future> Future for Catching<F> {
    type Output = Result<F::Output, Reason>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let outer = self.id.map(|id| Node::current().function.replace(Some(id)));
        let catching = report::Catching::begin();
        let polled = catch_unwind(AssertUnwindSafe(|| self.future.as_mut().poll(cx)));
        drop(catching);
        if let Some(outer) = outer {
            Node::current().function.set(outer);
        }
        match polled {
            Ok(poll) => poll.map(Ok),
            Err(payload) if payload.is::<ExitRequest>() => {
                // `process::exit` unwinds through the task. It must not become the panic of the
                // task. Clearing the lanes stops the drain.
                Node::current().drop_lanes();
                Poll::Pending
            }
            Err(payload) => Poll::Ready(Err(Reason::from_panic(payload))),
        }
    }
}
