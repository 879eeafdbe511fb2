//! What an engine of another language needs to run on the loop in Node's order.
//!
//! It is hidden until it has a second user: `phaseloop-js` is the first.

use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::rc::Rc;
use std::task::Waker;

use super::context::Node;
pub use super::places::Place;
use super::process::Origin;
use super::promise::Promise;
use super::reason::{Reason, Thrown};
use super::rejections::Rejection as State;
use super::report;
use phaseloop::extension::Call;
use phaseloop::extension::Loop;
pub use phaseloop::extension::NumberedMap;
pub use phaseloop::extension::Payload;
pub use phaseloop::extension::frame::{Frame, use_contexts};

/// Returns the number of microtasks that were queued on the current loop so far; 0 without a loop.
/// Only its changes mean something.
#[must_use]
pub fn microtasks_queued() -> usize {
    Loop::current().map_or(0, |core| core.microtasks_queued())
}

/// Queues a microtask without a context: the engine enters that of each of its jobs.
pub fn queue_jobs(run: impl FnOnce() + 'static) {
    if let Some(core) = Loop::current() {
        core.push_microtask(Call::new(run));
    }
}

/// Polls what `waker` wakes inside of the caller, instead of in its turn in the lane. A task that
/// is queued already keeps its turn.
pub fn poll_in_place(waker: Waker) {
    if let Some(core) = Loop::current() {
        core.run_in_place(|| waker.wake());
    }
}

/// A rejected promise of the engine that had no handler.
#[derive(Clone)]
pub struct Rejection(Rc<Node>, Rc<State>);

impl std::fmt::Debug for Rejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Rejection").finish()
    }
}

/// Adds a rejected promise without a handler: it is reported when the lanes are empty.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
pub fn rejected(reason: Reason) -> Rejection {
    let node = Node::current();
    let state = node.rejections.add(&node, reason, None, Location::caller());
    Rejection(node, state)
}

impl Rejection {
    /// Marks the rejection as handled.
    pub fn handled(&self) {
        self.0.rejections.handled(&self.0, &self.1);
    }
}

/// Calls `f` and returns what it has unwound with. What [`throw`](super::throw) throws in `f`
/// unwinds with its reason.
///
/// # Errors
///
/// The payload of the panic, of a thrown error, or of [`exit`](super::process::exit).
pub fn catch_any<R>(f: impl FnOnce() -> R) -> Result<R, Payload> {
    let _catching = report::Catching::begin();
    catch_unwind(AssertUnwindSafe(f))
}

/// Returns the reason that was thrown.
///
/// # Errors
///
/// The payload, if it is that of a panic or of [`exit`](super::process::exit).
pub fn thrown(payload: Payload) -> Result<Reason, Payload> {
    payload.downcast::<Thrown>().map(|it| it.into_reason())
}

/// Calls `f` when the promise is settled, inside of what settles it; at once if it is settled. The
/// promise counts as handled.
pub fn on_settled<T: Clone + 'static>(
    promise: &Promise<T>,
    f: impl FnOnce(Result<T, Reason>) + 'static,
) {
    promise.on_settled(f);
}

/// Returns the error of this crate inside a reason.
#[must_use]
pub fn node_error(reason: &Reason) -> Option<&super::Error> {
    reason.node_error()
}

/// Sets what describes the engine's errors on the current loop. An uncaught one is printed as `f`
/// returns it. `None` is for errors that are not the engine's.
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn describe_with(f: fn(&Reason, Origin) -> Option<String>) {
    Node::current().process.describe.set(Some(f));
}

/// Adds a line to the reports of the current loop: what the engine's program waits for, and the
/// place in the program, such as `app.js:12:7`. The line is gone when the result is dropped.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
pub fn place(what: &'static str, at: Rc<str>) -> Place {
    Node::current().places.add(what, at)
}

/// Returns Node's text for the code of a system error, such as `ENOENT`.
#[must_use]
pub fn text_of(code: &str) -> Option<&'static str> {
    super::error::text_of(code)
}
