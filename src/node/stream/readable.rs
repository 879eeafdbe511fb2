//! Readable streams.
//!
//! ```text
//!   push ──┬── flowing, nothing kept, somebody listens ──> 'data' at once
//!          └── kept ──┬── flowing: a tick ──> 'data', one after the other
//!                     └── paused: a tick ──> 'readable' ──> read()
//!   push_end ──> all read ──> a tick: 'end' ──> destroy ──> a tick: 'close'
//! ```

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::{Rc, Weak};

use super::super::error::Error;
use super::super::events::{Emitter, Event, EventEmitter, ListenerId, Listening, Watch};
use super::super::string_decoder::Encoding;
use super::base::{Base, ConstructHook, DestroyHook, Done, Held, ReadableSide, StreamId};
use super::chunk::{ByteChunk, Mode};
use super::reading::Amount;

/// Called when the stream wants more: pushes what there is, now or later.
type ReadHook<T> = Box<dyn FnMut(&Readable<T>, usize)>;

/// Makes text of the bytes that are pushed; see [`Readable::set_encoding`].
pub(super) type DecodeHook<T> = Box<dyn FnMut(Option<T>) -> T>;

/// A source of chunks. A clone is the same stream.
///
/// Its function `read` is called when there is room, and answers by [`push`](Self::push), at once or later, and in the end
/// by [`push_end`](Self::push_end). Chunks are had in one of three ways:
///
/// - *flowing*: a listener for `data` ([`on_data`](Self::on_data)), [`resume`](Self::resume) or [`pipe`](Self::pipe) starts
///   the flow by a tick. What is kept then comes in one go, without drains between; later chunks come inside `push` (N140).
/// - *paused*: [`READABLE`](super::READABLE) is emitted by a tick, once for all that came until then, and
///   [`read`](Self::read) takes (N141).
/// - *awaited*: [`chunks`](Self::chunks) (N145).
///
/// # Examples
///
/// ```
/// use std::{cell::RefCell, rc::Rc};
/// use phaseloop::node::{run, stream::Readable};
///
/// let seen = Rc::new(RefCell::new(Vec::new()));
/// let log = seen.clone();
/// run(async move {
///     let readable = Readable::objects().build();
///     readable.push(1);
///     readable.push(2);
///     readable.push_end();
///     readable.on_data(move |n| log.borrow_mut().push(*n));
/// });
/// assert_eq!(*seen.borrow(), [1, 2]);
/// ```
pub struct Readable<T: 'static> {
    pub(super) state: Rc<State<T>>,
    /// The writable side of a duplex stream lives as long as this.
    pub(super) held: Held,
}

pub(super) struct State<T: 'static> {
    pub(super) base: Rc<Base>,
    pub(super) me: Weak<Self>,
    /// Another one after `set_encoding`.
    pub(super) mode: Cell<Mode<T>>,
    /// Decodes what is pushed; of `None`, what the end leaves.
    pub(super) decode: RefCell<Option<DecodeHook<T>>>,
    /// How it decodes.
    pub(super) encoding: Cell<Option<Encoding>>,
    pub(super) high_water_mark: Cell<usize>,
    /// How much was pushed, in bytes.
    pub(super) total: Cell<u64>,
    pub(super) read_hook: RefCell<Option<ReadHook<T>>>,
    pub(super) buffer: RefCell<VecDeque<T>>,
    /// What the buffer holds, counted by the mode.
    pub(super) length: Cell<usize>,
    pub(super) ended: Cell<bool>,
    pub(super) end_emitted: Cell<bool>,
    /// The function `read` was called and has not pushed yet.
    pub(super) reading: Cell<bool>,
    /// Inside that call: what it pushes is kept.
    pub(super) sync: Cell<bool>,
    pub(super) need_readable: Cell<bool>,
    pub(super) emitted_readable: Cell<bool>,
    pub(super) readable_listening: Cell<bool>,
    pub(super) data_listening: Cell<bool>,
    pub(super) resume_scheduled: Cell<bool>,
    pub(super) reading_more: Cell<bool>,
    pub(super) flowing: Cell<Option<bool>>,
    pub(super) paused: Cell<Option<bool>>,
    /// Where this stream is piped to.
    pub(super) pipes: RefCell<Vec<StreamId>>,
    /// Those of them that are full.
    pub(super) awaiting_drain: RefCell<Vec<StreamId>>,
}

/// Makes a [`Readable`].
#[must_use = "a builder does nothing until `build`"]
pub struct ReadableBuilder<T: 'static> {
    mode: Mode<T>,
    pub(super) high_water_mark: Option<usize>,
    read: Option<ReadHook<T>>,
    pub(super) construct: Option<ConstructHook>,
    pub(super) destroy: Option<DestroyHook>,
    pub(super) auto_destroy: bool,
}

impl<T: 'static> ReadableBuilder<T> {
    pub(super) fn new(mode: Mode<T>) -> Self {
        Self {
            mode,
            high_water_mark: None,
            read: None,
            construct: None,
            destroy: None,
            auto_destroy: true,
        }
    }

    /// How much is kept before `read` is no longer called: bytes, or objects. 16 KiB or 16 unless told otherwise.
    pub fn high_water_mark(mut self, mark: usize) -> Self {
        self.high_water_mark = Some(mark);
        self
    }

    /// The function that is called when the stream wants more, with how much it wants. It is not called again before it
    /// has pushed. A panic in it [destroys](Readable::destroy) the stream.
    pub fn read(mut self, read: impl FnMut(&Readable<T>, usize) + 'static) -> Self {
        self.read = Some(Box::new(read));
        self
    }

    /// The function that is called, by a tick, before all others.
    pub fn construct(mut self, construct: impl FnOnce(Done) + 'static) -> Self {
        self.construct = Some(Box::new(construct));
        self
    }

    /// The function that is called when the stream is destroyed, to close what it uses.
    pub fn destroy(mut self, destroy: impl FnOnce(Option<Error>, Done) + 'static) -> Self {
        self.destroy = Some(Box::new(destroy));
        self
    }

    /// Whether the stream is destroyed after its end, or after an error; it is unless told otherwise.
    pub fn auto_destroy(mut self, auto_destroy: bool) -> Self {
        self.auto_destroy = auto_destroy;
        self
    }

    /// Makes the stream.
    #[must_use]
    pub fn build(mut self) -> Readable<T> {
        let base = Base::new(self.destroy.take(), self.auto_destroy);
        let construct = self.construct.take();
        let readable = self.build_on(&base);
        base.emitter.set_class("Readable");
        base.emitter.watched_by(readable.watch());
        if let Some(construct) = construct {
            base.construct(construct);
        }
        readable
    }

    pub(super) fn build_on(self, base: &Rc<Base>) -> Readable<T> {
        let mark = self.mode.high_water_mark();
        let state = Rc::new_cyclic(|me| State {
            base: base.clone(),
            me: me.clone(),
            mode: Cell::new(self.mode),
            decode: RefCell::default(),
            encoding: Cell::new(None),
            high_water_mark: Cell::new(self.high_water_mark.unwrap_or(mark)),
            total: Cell::new(0),
            read_hook: RefCell::new(self.read),
            buffer: RefCell::default(),
            length: Cell::new(0),
            ended: Cell::new(false),
            end_emitted: Cell::new(false),
            reading: Cell::new(false),
            sync: Cell::new(true),
            need_readable: Cell::new(false),
            emitted_readable: Cell::new(false),
            readable_listening: Cell::new(false),
            data_listening: Cell::new(false),
            resume_scheduled: Cell::new(false),
            reading_more: Cell::new(false),
            flowing: Cell::new(None),
            paused: Cell::new(None),
            pipes: RefCell::default(),
            awaiting_drain: RefCell::default(),
        });
        let side: Weak<dyn ReadableSide> = Rc::<State<T>>::downgrade(&state);
        base.has_readable(side);
        Readable {
            state,
            held: Held::default(),
        }
    }
}

impl<T: 'static> Readable<T> {
    /// A chunk has come.
    pub const DATA: Event<T> = Event::new("data");

    /// A stream of bytes.
    pub fn bytes() -> ReadableBuilder<T>
    where
        T: ByteChunk,
    {
        ReadableBuilder::new(Mode::bytes())
    }

    /// A stream in object mode.
    pub fn objects() -> ReadableBuilder<T> {
        ReadableBuilder::new(Mode::OBJECTS)
    }

    pub(super) fn state(&self) -> &Rc<State<T>> {
        &self.state
    }

    pub(super) fn watch(&self) -> Weak<dyn Watch> {
        Rc::<State<T>>::downgrade(&self.state)
    }

    // The source's side.

    /// Gives the stream a chunk. `false`: it has enough, and asks for more when it wants it.
    ///
    /// After [`push_end`](Self::push_end) this is an error of the stream, `ERR_STREAM_PUSH_AFTER_EOF`. Once the stream is
    /// destroyed the chunk is dropped.
    pub fn push(&self, chunk: T) -> bool {
        self.state.push(chunk)
    }

    /// The source has ended.
    pub fn push_end(&self) {
        self.state.push_end();
    }

    /// Puts a chunk back, before all others.
    pub fn unshift(&self, chunk: T) -> bool {
        let state = &self.state;
        if state.end_emitted.get() {
            let text = "stream.unshift() after end event";
            let error = Error::with_code("ERR_STREAM_UNSHIFT_AFTER_END_EVENT", text);
            state.base.error_or_destroy(error, false);
        } else if !state.is_over() {
            state.add(chunk, true);
        }
        state.can_push_more()
    }

    // The reader's side.

    /// Takes what is there: all bytes, or one object. `None`: nothing is there now.
    pub fn read(&self) -> Option<T> {
        self.state.read(Amount::All)
    }

    /// Takes `size` bytes; `None` until as many are there, or the source has ended. In object mode, one object.
    pub fn read_size(&self, size: usize) -> Option<T> {
        self.state.read(Amount::Exactly(size))
    }

    /// Adds a listener for chunks, and starts the flow unless the stream was paused.
    pub fn on_data(&self, listener: impl Fn(&T) + 'static) -> ListenerId {
        self.state.base.emitter.on(Self::DATA, listener)
    }

    /// Adds a listener for `data` that is given the stream first; see [`Emitter::on_this`].
    pub fn on_data_this(&self, listener: impl Fn(&Listening<Self>, &T) + 'static) -> ListenerId {
        self.on_this(Self::DATA, listener)
    }

    /// Starts the flow, by a tick; chunks that nobody listens to are lost. Without effect while somebody listens to
    /// [`READABLE`](super::READABLE).
    pub fn resume(&self) {
        self.state.resume();
    }

    /// Stops the flow, at once.
    pub fn pause(&self) {
        self.state.pause();
    }

    /// Whether the flow was stopped.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.state.paused.get() == Some(true) || self.state.flowing.get() == Some(false)
    }

    /// Whether the stream flows; `None` if nobody has said.
    #[must_use]
    pub fn flowing(&self) -> Option<bool> {
        self.state.flowing.get()
    }

    /// Whether there can still be something to read.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.state.is_readable()
    }

    /// Whether [`END`](super::END) was emitted.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.state.end_emitted.get()
    }

    /// How much is kept: bytes, or objects.
    #[must_use]
    pub fn length(&self) -> usize {
        self.state.length.get()
    }

    /// How much is kept before the source is no longer asked.
    #[must_use]
    pub fn high_water_mark(&self) -> usize {
        self.state.high_water_mark.get()
    }

    /// How many bytes the source has given so far; in object mode, objects. JavaScript: `readStream.bytesRead`,
    /// `socket.bytesRead`.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.state.total.get()
    }

    // The end.

    /// Ends the stream: its function `destroy` is called at once, and a tick later `error`, if there is one, and
    /// [`CLOSE`](super::CLOSE) are emitted, but no [`END`](super::END) (N144).
    pub fn destroy(&self, error: Option<Error>) {
        self.state.base.destroy(error);
    }

    /// Whether the stream was destroyed.
    #[must_use]
    pub fn destroyed(&self) -> bool {
        self.state.base.destroyed.get()
    }

    /// The error that has ended the stream.
    #[must_use]
    pub fn errored(&self) -> Option<Error> {
        self.state.base.error()
    }

    /// Which stream this is.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.state.base.id
    }
}

impl<T: 'static> Emitter for Readable<T> {
    fn emitter(&self) -> &EventEmitter {
        &self.state.base.emitter
    }
}

impl<T: 'static> Clone for Readable<T> {
    fn clone(&self) -> Self {
        Self {
            state: self.state.clone(),
            held: self.held.clone(),
        }
    }
}

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

impl<T: 'static> fmt::Debug for ReadableBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadableBuilder")
            .field("high_water_mark", &self.high_water_mark)
            .finish_non_exhaustive()
    }
}
