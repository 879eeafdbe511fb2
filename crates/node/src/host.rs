//! What an engine of another language needs to run on the loop in Node's order.
//!
//! It is hidden until it has a second user: `phaseloop-js` is the first.

use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::rc::Rc;
use std::task::Waker;

use super::context::Node;
use super::process::Origin;
use super::promise::Promise;
use super::reason::{Reason, Thrown};
use super::rejections::Rejection as State;
use super::report;
pub use super::report_lines::ReportLine;
use super::stream::{ByteChunk, Duplex, Pipeline, PipelineEnd, Readable, Writable};
use super::string_decoder::Encoding;
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
pub fn report_line(what: &'static str, at: Rc<str>) -> ReportLine {
    Node::current().report_lines.add(what, at)
}

/// Returns Node's text for the code of a system error, such as `ENOENT`.
#[must_use]
pub fn text_of(code: &str) -> Option<&'static str> {
    super::error::text_of(code)
}

/// Returns the error with the value of the engine that it stands for.
#[must_use]
pub fn with_value(error: super::Error, value: Rc<dyn std::any::Any>) -> super::Error {
    error.with_value(value)
}

/// Returns the value of [`with_value`], or the [`Reason`] that was thrown where only an error of
/// this crate is kept.
#[must_use]
pub fn value_of(error: &super::Error) -> Option<&Rc<dyn std::any::Any>> {
    error.value()
}

/// Returns the stream of two handles, if they are the sides of one.
#[must_use]
pub fn duplex_of<W: 'static, R: 'static>(
    readable: &Readable<R>,
    writable: &Writable<W>,
) -> Option<Duplex<W, R>> {
    Duplex::of_sides(readable, writable)
}

/// Pipes into a sink of other chunks, which is ended or stays open. A conversion that panics
/// destroys the sink.
pub fn pipe<T: Clone + Into<S> + 'static, S: 'static>(
    source: &Readable<T>,
    sink: &Writable<S>,
    ends: bool,
) {
    source.pipe_with(sink, ends);
}

/// Stops a pipe into a sink of other chunks.
pub fn unpipe<T: Clone + 'static, S: 'static>(source: &Readable<T>, sink: &Writable<S>) {
    source.unpipe_from(sink);
}

/// Appends a stream of other chunks to a chain.
pub fn through<T: Clone + Into<W> + 'static, W: 'static, R: 'static>(
    chain: Pipeline<T>,
    next: &Duplex<W, R>,
) -> Pipeline<R> {
    chain.through_other(next)
}

/// Ends a chain with a sink of other chunks, which is ended or stays open.
pub fn into_sink<T: Clone + Into<S> + 'static, S: 'static>(
    chain: Pipeline<T>,
    sink: &Writable<S>,
    ends: bool,
) -> PipelineEnd {
    chain.into_other(sink, ends)
}

/// Leaves a loop over the chunks of a stream: it is destroyed with the error, unless it is a
/// message of HTTP with a rule of its own.
pub fn leave<T: 'static>(readable: &Readable<T>, error: Option<super::Error>) {
    readable.leave(error);
}

/// Decodes a stream from now on: `decode` gets each chunk, and `None` at the end.
pub fn decode_with<T: ByteChunk>(
    readable: &Readable<T>,
    encoding: Encoding,
    decode: impl FnMut(Option<T>) -> T + 'static,
) {
    readable.decode_with(encoding, decode);
}

/// Returns the handle of an open file.
#[must_use]
pub fn file_handle(file: std::fs::File) -> super::fs::FileHandle {
    super::fs::FileHandle::of(file)
}

/// Returns the open file of a handle.
///
/// # Errors
///
/// `EBADF` once it is closed.
pub fn file_of(
    handle: &super::fs::FileHandle,
) -> Result<std::sync::Arc<std::fs::File>, super::Error> {
    handle.opened("read")
}

/// Closes the file of a handle at once: when what uses it on the pool has ended.
pub fn close_file(handle: &super::fs::FileHandle) {
    drop(handle.take());
}

/// Reads a stream line by line, whose chunks convert to bytes.
///
/// # Panics
///
/// When no loop runs on this thread.
#[must_use]
pub fn create_interface<T>(input: &Readable<T>) -> super::readline::Interface
where
    T: Clone + Into<Vec<u8>> + 'static,
{
    super::readline::interface_of(input)
}

/// Sets what writes the prompts and questions of an interface.
#[must_use = "a handle to the same interface is returned"]
pub fn readline_output(
    interface: super::readline::Interface,
    write: impl Fn(&str) + 'static,
) -> super::readline::Interface {
    interface.output_with(write)
}
