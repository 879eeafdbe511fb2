//! Writable streams.
//!
//! ```text
//!   write ──┬── idle: call `write` at once ── done ──┬── inside the call: callback on a tick
//!           └── busy: buffered, in order             └── later: callback at once
//!   end ──> all written ──> call `end` ──> a tick: callbacks of `end`, 'finish' ──> destroy
//!   destroy ──> a tick: 'close'
//! ```

mod builder;
mod end;
mod flow;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::{Rc, Weak};

pub use self::builder::WritableBuilder;
use super::base::{Base, Callback, Done, ReadableSide, StreamId, WritableSide as _};
use super::chunk::{ByteChunk, IntoChunk, IntoLast, Mode};
use super::foreign::Sink;
use super::shared::impl_stream;
use crate::error::Error;
use crate::events::{Emitter, EventEmitter};

type WriteHook<T> = Box<dyn FnMut(T, Done)>;
type WriteAllHook<T> = Box<dyn FnMut(Vec<T>, Done)>;
type FinalHook = Box<dyn FnOnce(Done)>;

/// What a stream writes to.
pub(super) enum Output<T: 'static> {
    Functions(Box<Functions<T>>),
    Device(Rc<dyn Device<T>>),
    /// The object handles all writes, in place of the stream's state.
    Sink(Rc<dyn Sink<T>>),
}

/// The functions of the builder.
pub(super) struct Functions<T: 'static> {
    write: RefCell<Option<WriteHook<T>>>,
    write_all: RefCell<Option<WriteAllHook<T>>>,
    end: RefCell<Option<FinalHook>>,
}

/// An object in place of the functions of the builder.
pub(crate) trait Device<T> {
    fn write(self: Rc<Self>, chunk: T, done: Done);
    /// Called in place of `write` when several chunks wait.
    fn write_all(self: Rc<Self>, chunks: Vec<T>, done: Done);
    /// Called after the last write.
    fn end(self: Rc<Self>, done: Done);
    /// Returns the error of a write after the end, if it is not the usual one.
    fn refusal_after_end(&self) -> Option<Error> {
        None
    }
}

/// A sink for chunks. A clone is a handle to the same stream. JavaScript: `stream.Writable`.
///
/// The `write` function is called with one chunk at a time, at once if the sink is idle. The next
/// chunk waits until the function has [reported](Done) that it is done.
///
/// # Examples
///
/// ```
/// use std::{cell::RefCell, rc::Rc};
/// use phaseloop_node::{run, stream::Writable};
///
/// fn main() {
///     let seen = Rc::new(RefCell::new(String::new()));
///     let text = seen.clone();
///     run(async move {
///         let writable = Writable::bytes(move |chunk: String, done| {
///             text.borrow_mut().push_str(&chunk);
///             done.ok();
///         })
///         .build();
///         writable.write("hello, ");
///         writable.write("world");
///         writable.end(());
///     });
///     assert_eq!(*seen.borrow(), "hello, world");
/// }
/// ```
pub struct Writable<T: 'static> {
    pub(super) state: Rc<State<T>>,
    /// Keeps the readable side of a duplex stream alive.
    pub(super) other_side: Option<Rc<dyn ReadableSide>>,
}

pub(super) struct State<T: 'static> {
    pub(super) base: Rc<Base>,
    pub(super) me: Weak<Self>,
    pub(super) mode: Mode<T>,
    pub(super) high_water_mark: usize,
    pub(super) output: Output<T>,
    /// The chunks that wait for the sink.
    pub(super) buffer: RefCell<VecDeque<(T, Option<Callback>)>>,
    /// The size of the waiting chunks and of the one being written, in units of the mode.
    pub(super) length: Cell<usize>,
    /// The number of bytes accepted by the sink so far.
    pub(super) total: Cell<u64>,
    /// The size of the chunks that are being written.
    pub(super) writing_length: Cell<usize>,
    pub(super) writing_callback: RefCell<Option<Callback>>,
    /// A write that completed inside the `write` function, after that function had written more to
    /// this stream. Those chunks go first.
    pub(super) done_inside: RefCell<Option<Option<Callback>>>,
    pub(super) writing: Cell<bool>,
    /// Whether the function `write` or `write_all` is on the stack.
    pub(super) in_write: Cell<bool>,
    /// Whether `write`, `write_all` or `end` is on the stack: a completion inside them is reported
    /// on a tick.
    pub(super) sync: Cell<bool>,
    pub(super) corked: Cell<usize>,
    pub(super) need_drain: Cell<bool>,
    pub(super) working_off: Cell<bool>,
    pub(super) after_write_pending: Cell<bool>,
    pub(super) ending: Cell<bool>,
    pub(super) ended: Cell<bool>,
    pub(super) final_called: Cell<bool>,
    pub(super) prefinished: Cell<bool>,
    pub(super) finished: Cell<bool>,
    /// The number of callbacks that must run before 'finish'.
    pub(super) pending_callbacks: Cell<usize>,
    pub(super) on_finished: RefCell<Vec<Callback>>,
}

impl<T: 'static> Writable<T> {
    /// Returns whether something outside the program takes the chunks of the open stream.
    pub(super) fn is_of_device(&self) -> bool {
        !matches!(self.state.output, Output::Functions(_)) && !self.destroyed()
    }

    /// Creates a builder for a sink of bytes; `write` writes them.
    pub fn bytes(write: impl FnMut(T, Done) + 'static) -> WritableBuilder<T>
    where
        T: ByteChunk,
    {
        WritableBuilder::new(Mode::bytes(), Box::new(write))
    }

    /// Creates a builder for a sink of bytes; `device` writes them.
    pub(crate) fn to_device(device: Rc<dyn Device<T>>) -> WritableBuilder<T>
    where
        T: ByteChunk,
    {
        WritableBuilder::of(Mode::bytes(), Output::Device(device))
    }

    /// Creates a builder for a sink in object mode.
    pub fn objects(write: impl FnMut(T, Done) + 'static) -> WritableBuilder<T> {
        WritableBuilder::new(Mode::OBJECTS, Box::new(write))
    }

    /// Writes a chunk. Returns `false` if the stream is full; [`DRAIN`](super::DRAIN) reports that
    /// it has room again. The chunk is accepted in either case. JavaScript:
    /// `writable.write(chunk)`.
    ///
    /// A write after [`end`](Self::end), or to a destroyed stream, is an error of the stream.
    pub fn write(&self, chunk: impl IntoChunk<T>) -> bool {
        self.write_chunk(chunk.into_chunk(), None)
    }

    /// Writes a chunk, and calls `callback` when it is written: on a tick if the write completes at
    /// once.
    //
    // N142.
    pub fn write_with(
        &self,
        chunk: impl IntoChunk<T>,
        callback: impl FnOnce(Result<(), Error>) + 'static,
    ) -> bool {
        self.write_chunk(chunk.into_chunk(), Some(Box::new(callback)))
    }

    /// Writes a chunk with a callback that is boxed already, if there is one.
    pub(crate) fn write_chunk(&self, chunk: T, callback: Option<Callback>) -> bool {
        let written = self.state.write(chunk, callback);
        written.is_ok_and(|room| room)
    }

    /// Ends the stream: no more chunks follow. When all chunks are written, the `end` function is
    /// called, then [`FINISH`](super::FINISH) is emitted. JavaScript: `writable.end(chunk)`.
    ///
    /// `last` is written first, if it is a chunk. `()` is none.
    pub fn end<K>(&self, last: impl IntoLast<T, K>) {
        self.state.end(last.into_last(), None);
    }

    /// Ends the stream like [`end`](Self::end), and calls `callback` before
    /// [`FINISH`](super::FINISH). JavaScript: `writable.end(chunk, callback)`.
    pub fn end_with<K>(
        &self,
        last: impl IntoLast<T, K>,
        callback: impl FnOnce(Result<(), Error>) + 'static,
    ) {
        self.state.end(last.into_last(), Some(Box::new(callback)));
    }

    /// Buffers all writes until [`uncork`](Self::uncork) was called as often. JavaScript:
    /// `writable.cork()`.
    pub fn cork(&self) {
        match self.state.sink() {
            Some(sink) => sink.cork(),
            None => self.state.corked.set(self.state.corked.get() + 1),
        }
    }

    /// Undoes one [`cork`](Self::cork). JavaScript: `writable.uncork()`.
    pub fn uncork(&self) {
        self.state.uncork();
    }

    /// Undoes all corks.
    pub(crate) fn uncork_all(&self) {
        if self.state.corked.get() > 0 {
            self.state.corked.set(1);
            self.state.uncork();
        }
    }

    /// Returns how often [`uncork`](Self::uncork) must be called before the stream writes again.
    /// JavaScript: `writable.writableCorked`.
    #[must_use]
    pub fn corked(&self) -> usize {
        match self.state.sink() {
            Some(sink) => sink.corked(),
            None => self.state.corked.get(),
        }
    }

    /// Returns whether the stream accepts more chunks. JavaScript: `writable.writable`.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.state.is_writable()
    }

    /// Returns whether the stream is full and [`DRAIN`](super::DRAIN) will follow. JavaScript:
    /// `writable.writableNeedDrain`.
    #[must_use]
    pub fn need_drain(&self) -> bool {
        self.state.need_drain()
    }

    /// Returns whether [`end`](Self::end) was called. JavaScript: `writable.writableEnded`.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.state.ending()
    }

    /// Returns whether every chunk is written after [`end`](Self::end). JavaScript:
    /// `writable.writableFinished`.
    #[must_use]
    pub fn finished(&self) -> bool {
        self.state.finished()
    }

    /// Returns the size of all waiting and current writes, in bytes or objects. JavaScript:
    /// `writable.writableLength`.
    #[must_use]
    pub fn length(&self) -> usize {
        match self.state.sink() {
            Some(sink) => sink.length(),
            None => self.state.length.get(),
        }
    }

    /// Returns the number of bytes that the sink has accepted so far; in object mode, of objects.
    /// JavaScript: `writeStream.bytesWritten`.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.state.total.get()
    }

    /// Returns how much may wait before the stream is full. JavaScript:
    /// `writable.writableHighWaterMark`.
    #[must_use]
    pub fn high_water_mark(&self) -> usize {
        match self.state.sink() {
            Some(sink) => sink.high_water_mark(),
            None => self.state.high_water_mark,
        }
    }
}

impl_stream!(Writable, readable);

impl<T: 'static> fmt::Debug for Writable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writable")
            .field("length", &self.length())
            .field("ended", &self.ended())
            .field("finished", &self.finished())
            .field("destroyed", &self.destroyed())
            .finish_non_exhaustive()
    }
}
