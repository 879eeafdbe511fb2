//! Readable streams.
//!
//! ```text
//!   push ──┬── flowing, buffer empty, a listener for 'data' ──> 'data' at once
//!          └── buffered ──┬── flowing: a tick ──> 'data', one chunk after the other
//!                         └── paused: a tick ──> 'readable' ──> read()
//!   push_end ──> buffer read ──> a tick: 'end' ──> destroy ──> a tick: 'close'
//! ```

mod builder;
mod flow;
mod listening;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::{Rc, Weak};

pub use self::builder::ReadableBuilder;
use self::flow::Amount;
use super::base::{Base, Done, ReadableSide as _, StreamId, WritableSide};
use super::chunk::{ByteChunk, Mode};
use super::shared::impl_stream;
use crate::error::Error;
use crate::events::{Emitter, Event, EventEmitter, ListenerId, Listening};
use crate::string_decoder::Encoding;

/// A function that pushes chunks, now or later. It gets the wanted size.
type ReadCall<T> = dyn FnMut(&Readable<T>, usize);

/// What is called when the stream wants data.
pub(super) enum ReadHook<T: 'static> {
    Call(Box<ReadCall<T>>),
    Source(Rc<dyn Source<T>>),
}

/// What a stream reads from: an object in place of the functions of the builder.
pub(crate) trait Source<T> {
    /// Called when the stream wants data.
    fn read(self: Rc<Self>, stream: &Readable<T>);
    /// Releases the resources of the stream when it is destroyed.
    fn destroy(self: Rc<Self>, stream: &Readable<T>, error: Option<Error>, done: Done);
    /// Called when a loop over the stream is left or its pipeline fails. Returns whether the stream
    /// is to be destroyed.
    fn leave(&self) -> bool;
    /// Returns whether the stream may be used again after its close.
    fn stays(&self) -> bool {
        false
    }
}

/// Decodes pushed bytes to text; see [`Readable::set_encoding`].
pub(super) type DecodeHook<T> = Box<dyn FnMut(Option<T>) -> T>;

/// A source of chunks. A clone is a handle to the same stream. JavaScript: `stream.Readable`.
///
/// The `read` function is called while the buffer has room. It responds with [`push`](Self::push),
/// at once or later, and with [`push_end`](Self::push_end) at the end. Chunks are consumed in one
/// of three modes:
///
/// - *flowing*: a listener for `data` ([`on_data`](Self::on_data)), [`resume`](Self::resume) or
///   [`pipe`](Self::pipe) starts the flow on the next tick. Buffered chunks are then emitted in a
///   row, without a drain of the lanes between them. Later chunks are emitted inside `push`.
/// - *paused*: [`READABLE`](super::READABLE) is emitted on a tick, once for all chunks that have
///   arrived, and [`read`](Self::read) returns them.
/// - *awaited*: [`chunks`](Self::chunks) is a `futures` stream.
///
/// # Examples
///
/// ```
/// use std::{cell::RefCell, rc::Rc};
/// use phaseloop_node::{run, stream::Readable};
///
/// fn main() {
///     let seen = Rc::new(RefCell::new(Vec::new()));
///     let log = seen.clone();
///     run(async move {
///         let readable = Readable::objects().build();
///         readable.push(1);
///         readable.push(2);
///         readable.push_end();
///         readable.on_data(move |n| log.borrow_mut().push(*n));
///     });
///     assert_eq!(*seen.borrow(), [1, 2]);
/// }
/// ```
pub struct Readable<T: 'static> {
    pub(super) state: Rc<State<T>>,
    /// Keeps the writable side of a duplex stream alive.
    pub(super) other_side: Option<Rc<dyn WritableSide>>,
}

pub(super) struct State<T: 'static> {
    pub(super) base: Rc<Base>,
    pub(super) me: Weak<Self>,
    /// Replaced by `set_encoding`.
    pub(super) mode: Cell<Mode<T>>,
    /// Decodes pushed bytes; called with `None` at EOF, for an incomplete rest.
    pub(super) decode: RefCell<Option<DecodeHook<T>>>,
    /// The encoding of `decode`.
    pub(super) encoding: Cell<Option<Encoding>>,
    pub(super) high_water_mark: Cell<usize>,
    /// The number of bytes pushed so far.
    pub(super) total: Cell<u64>,
    pub(super) read_hook: RefCell<Option<ReadHook<T>>>,
    pub(super) buffer: RefCell<VecDeque<T>>,
    /// The size of the buffer, in units of the mode.
    pub(super) length: Cell<usize>,
    pub(super) ended: Cell<bool>,
    pub(super) end_emitted: Cell<bool>,
    /// Whether a tick is queued that emits 'end'.
    pub(super) end_scheduled: Cell<bool>,
    /// Whether EOF came without a listener for 'readable'.
    pub(super) unannounced_end: Cell<bool>,
    /// Whether the `read` function was called and has not pushed yet.
    pub(super) reading: Cell<bool>,
    /// Whether the `read` function is on the stack: a push from inside it is buffered.
    pub(super) sync: Cell<bool>,
    pub(super) need_readable: Cell<bool>,
    pub(super) emitted_readable: Cell<bool>,
    pub(super) readable_listening: Cell<bool>,
    pub(super) data_listening: Cell<bool>,
    pub(super) resume_scheduled: Cell<bool>,
    pub(super) reading_more: Cell<bool>,
    pub(super) flowing: Cell<Option<bool>>,
    pub(super) paused: Cell<Option<bool>>,
    /// The pipes of this stream, boxed because few streams have one.
    pub(super) pipes: OnceCell<Box<Pipes>>,
}

/// The pipes that a stream is the source of.
#[derive(Default)]
pub(super) struct Pipes {
    /// The sinks that the stream is piped into.
    pub(super) sinks: RefCell<Vec<StreamId>>,
    /// The sinks that are full.
    pub(super) full: RefCell<Vec<StreamId>>,
}

impl<T: 'static> Readable<T> {
    /// A chunk has arrived. JavaScript: `'data'`.
    pub const DATA: Event<T> = Event::new("data");

    /// Creates a builder for a stream of bytes.
    pub fn bytes() -> ReadableBuilder<T>
    where
        T: ByteChunk,
    {
        ReadableBuilder::new(Mode::bytes())
    }

    /// Creates a builder for a stream in object mode.
    pub fn objects() -> ReadableBuilder<T> {
        ReadableBuilder::new(Mode::OBJECTS)
    }

    /// Returns whether something outside the program feeds the open stream.
    pub(super) fn is_of_device(&self) -> bool {
        self.state.has_source() && !self.destroyed()
    }

    // The source's side.

    /// Adds a chunk to the stream. Returns `false` if the buffer is full; the stream calls `read`
    /// when it wants more. JavaScript: `readable.push(chunk)`.
    ///
    /// After [`push_end`](Self::push_end) the stream fails with `ERR_STREAM_PUSH_AFTER_EOF`. A
    /// destroyed stream drops the chunk.
    pub fn push(&self, chunk: T) -> bool {
        self.state.push(chunk)
    }

    /// Ends the source. JavaScript: `readable.push(null)`.
    pub fn push_end(&self) {
        self.state.push_end();
    }

    /// Puts a chunk back, ahead of all buffered chunks. An empty chunk of bytes is dropped.
    /// JavaScript: `readable.unshift(chunk)`.
    pub fn unshift(&self, chunk: T) -> bool {
        let state = &self.state;
        if state.mode.get().is_empty(&chunk) {
            return state.can_push_more();
        }
        if state.end_emitted.get() {
            let text = "stream.unshift() after end event";
            let error = Error::with_code("ERR_STREAM_UNSHIFT_AFTER_END_EVENT", text);
            state.base.error_or_destroy(error, false);
        } else if !state.is_over() {
            state.add(chunk, true);
        }
        state.can_push_more()
    }

    /// Counts bytes that a consumer takes before they reach the stream.
    pub(crate) fn count_read(&self, size: usize) {
        self.state.total.set(self.state.total.get() + size as u64);
    }

    /// Sets whether the stream waits for its first reader before it calls `read` on its own.
    pub(crate) fn waits_for_reader(&self, waits: bool) {
        self.state.reading_more.set(waits);
    }

    /// Creates a stream of bytes that reads from `source`, and waits for its first reader.
    pub(crate) fn of_source(class: &'static str, source: Rc<dyn Source<T>>) -> Self
    where
        T: ByteChunk,
    {
        let readable = Self::bytes().source(source).build();
        readable.emitter().set_class(class);
        readable.waits_for_reader(true);
        readable
    }

    /// Gives an [untouched](Self::is_untouched) stream another source, or none.
    pub(crate) fn set_source(&self, source: Option<Rc<dyn Source<T>>>) {
        let source = source.map(ReadHook::Source);
        let before = self.state.read_hook.replace(source);
        drop(before);
    }

    /// Returns whether a stream that [waits for a reader](Self::waits_for_reader) is as it was
    /// built, and is known to `handles` only: what becomes of it cannot be seen.
    pub(crate) fn is_untouched(&self, handles: usize) -> bool {
        // Without `..`, so that a new field is thought of here.
        let State {
            base,
            me: _,
            mode,
            decode: _,
            encoding,
            high_water_mark,
            total,
            read_hook: _,
            buffer: _,
            length,
            ended,
            end_emitted,
            end_scheduled,
            unannounced_end,
            reading,
            sync,
            need_readable,
            emitted_readable,
            readable_listening,
            data_listening,
            resume_scheduled,
            reading_more,
            flowing,
            paused,
            pipes,
        } = &*self.state;
        let begun = [
            ended,
            end_emitted,
            end_scheduled,
            unannounced_end,
            reading,
            need_readable,
            emitted_readable,
            readable_listening,
            data_listening,
            resume_scheduled,
        ];
        // The weak references are the state's own, its base's, and its emitter's.
        Rc::strong_count(&self.state) == handles
            && Rc::weak_count(&self.state) == 3
            && Rc::strong_count(base) == 1
            && base.is_untouched()
            && !begun.iter().any(|flag| flag.get())
            && sync.get()
            && reading_more.get()
            && (flowing.get(), paused.get()) == (None, None)
            && (length.get(), total.get()) == (0, 0)
            && encoding.get().is_none()
            && high_water_mark.get() == mode.get().high_water_mark()
            && pipes.get().is_none()
    }

    /// Lets the stream wait for a reader, as before its first one.
    pub(crate) fn forget_flow(&self) {
        self.state.flowing.set(None);
    }

    /// Returns whether a tick is queued that starts the flow.
    pub(crate) fn resumes_soon(&self) -> bool {
        self.state.resume_scheduled.get()
    }

    // The reader's side.

    /// Reads the next chunk of bytes, all buffered text, or one object. Returns `None` if the
    /// buffer is empty. JavaScript: `readable.read()`.
    pub fn read(&self) -> Option<T> {
        self.state.read(Amount::Any)
    }

    /// Reads `size` bytes, or one object in object mode. Returns `None` while fewer bytes are
    /// buffered, unless the source has ended. JavaScript: `readable.read(size)`.
    pub fn read_size(&self, size: usize) -> Option<T> {
        self.state.read(Amount::Exactly(size))
    }

    /// Adds a listener for chunks, and starts the flow unless the stream was paused. JavaScript:
    /// `readable.on('data', ..)`.
    pub fn on_data(&self, listener: impl Fn(&T) + 'static) -> ListenerId {
        self.state.base.emitter.on(Self::DATA, listener)
    }

    /// Adds a listener for `data` that gets the stream as its first argument; see
    /// [`Emitter::on_this`].
    pub fn on_data_this(&self, listener: impl Fn(&Listening<Self>, &T) + 'static) -> ListenerId {
        self.on_this(Self::DATA, listener)
    }

    /// Starts the flow on the next tick. Chunks are discarded if no listener is there. The call has
    /// no effect while a listener for [`READABLE`](super::READABLE) exists. JavaScript:
    /// `readable.resume()`.
    pub fn resume(&self) {
        self.state.resume();
    }

    /// Stops the flow at once. JavaScript: `readable.pause()`.
    pub fn pause(&self) {
        self.state.pause();
    }

    /// Returns whether the flow was stopped by [`pause`](Self::pause).
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.state.paused.get() == Some(true) || self.state.flowing.get() == Some(false)
    }

    /// Returns whether the stream flows, or `None` before the first [`resume`](Self::resume) or
    /// [`pause`](Self::pause). JavaScript: `readable.readableFlowing`.
    #[must_use]
    pub fn flowing(&self) -> Option<bool> {
        self.state.flowing.get()
    }

    /// Returns whether there may be more data to read. JavaScript: `readable.readable`.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.state.is_readable()
    }

    /// Returns whether [`END`](super::END) was emitted. JavaScript: `readable.readableEnded`.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.state.end_emitted.get()
    }

    /// Returns the size of the buffer, in bytes or objects. JavaScript: `readable.readableLength`.
    #[must_use]
    pub fn length(&self) -> usize {
        self.state.length.get()
    }

    /// Returns how much is buffered before `read` is no longer called. JavaScript:
    /// `readable.readableHighWaterMark`.
    #[must_use]
    pub fn high_water_mark(&self) -> usize {
        self.state.high_water_mark.get()
    }

    /// Returns the number of bytes pushed so far; in object mode, of objects. JavaScript:
    /// `readStream.bytesRead`, `socket.bytesRead`.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.state.total.get()
    }
}

impl_stream!(Readable, writable);

impl<T: 'static> fmt::Debug for Readable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readable")
            .field("length", &self.length())
            .field("flowing", &self.flowing())
            .field("ended", &self.ended())
            .field("destroyed", &self.destroyed())
            .finish_non_exhaustive()
    }
}
