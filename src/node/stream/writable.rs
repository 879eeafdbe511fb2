//! Writable streams.
//!
//! ```text
//!   write ──┬── idle: the function `write` at once ── done ──┬── inside the call: callback by a tick
//!           └── busy: kept, one after the other              └── later: callback at once
//!   end ──> all written ──> the function `final` ──> a tick: callbacks of `end`, 'finish' ──> destroy ──> a tick: 'close'
//! ```

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::{Rc, Weak};

use super::super::error::Error;
use super::super::events::{Emitter, EventEmitter};
use super::base::{Base, Callback, ConstructHook, DestroyHook, Done, Held, StreamId, WritableSide};
use super::chunk::{ByteChunk, IntoChunk, Mode};

type WriteHook<T> = Box<dyn FnMut(T, Done)>;
type WriteAllHook<T> = Box<dyn FnMut(Vec<T>, Done)>;
type FinalHook = Box<dyn FnOnce(Done)>;

/// A sink for chunks. A clone is the same stream.
///
/// Its function `write` is called with one chunk at a time, at once if the sink is idle; the next chunk waits until it has
/// [told](Done) that it is done.
///
/// # Examples
///
/// ```
/// use std::{cell::RefCell, rc::Rc};
/// use phaseloop::node::{run, stream::Writable};
///
/// let seen = Rc::new(RefCell::new(String::new()));
/// let text = seen.clone();
/// run(async move {
///     let writable = Writable::bytes(move |chunk: String, done| {
///         text.borrow_mut().push_str(&chunk);
///         done.ok();
///     })
///     .build();
///     writable.write("hello, ");
///     writable.write("world");
///     writable.end();
/// });
/// assert_eq!(*seen.borrow(), "hello, world");
/// ```
pub struct Writable<T: 'static> {
    pub(super) state: Rc<State<T>>,
    /// The readable side of a duplex stream lives as long as this.
    pub(super) held: Held,
}

pub(super) struct State<T: 'static> {
    pub(super) base: Rc<Base>,
    pub(super) me: Weak<Self>,
    pub(super) mode: Mode<T>,
    pub(super) high_water_mark: usize,
    pub(super) write_hook: RefCell<Option<WriteHook<T>>>,
    pub(super) write_all_hook: RefCell<Option<WriteAllHook<T>>>,
    pub(super) final_hook: RefCell<Option<FinalHook>>,
    /// What waits for the sink.
    pub(super) buffer: RefCell<VecDeque<(T, Option<Callback>)>>,
    /// What waits or is being written, counted by the mode.
    pub(super) length: Cell<usize>,
    /// How much was written.
    pub(super) total: Cell<u64>,
    /// How much of it is being written.
    pub(super) writing_length: Cell<usize>,
    pub(super) writing_callback: RefCell<Option<Callback>>,
    /// Done inside the call of the function `write`, which has itself written more: that goes first.
    pub(super) done_inside: RefCell<Option<Option<Callback>>>,
    pub(super) writing: Cell<bool>,
    /// Inside the call of the function `write` or `write_all`.
    pub(super) in_write: Cell<bool>,
    /// The same, or inside that of the function `end`: what is done there is reported by a tick.
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
    /// What has to be called before 'finish'.
    pub(super) pending_callbacks: Cell<usize>,
    pub(super) on_finished: RefCell<Vec<Callback>>,
}

/// Makes a [`Writable`].
#[must_use = "a builder does nothing until `build`"]
pub struct WritableBuilder<T: 'static> {
    mode: Mode<T>,
    pub(super) high_water_mark: Option<usize>,
    write: WriteHook<T>,
    write_all: Option<WriteAllHook<T>>,
    end: Option<FinalHook>,
    pub(super) construct: Option<ConstructHook>,
    pub(super) destroy: Option<DestroyHook>,
    pub(super) auto_destroy: bool,
}

impl<T: 'static> WritableBuilder<T> {
    pub(super) fn new(mode: Mode<T>, write: WriteHook<T>) -> Self {
        Self {
            mode,
            high_water_mark: None,
            write,
            write_all: None,
            end: None,
            construct: None,
            destroy: None,
            auto_destroy: true,
        }
    }

    /// How much may wait before [`write`](Writable::write) returns `false`: bytes, or objects. 16 KiB or 16 unless told
    /// otherwise.
    pub fn high_water_mark(mut self, mark: usize) -> Self {
        self.high_water_mark = Some(mark);
        self
    }

    /// A function that is called instead of `write` when several chunks wait. Node's `writev`.
    pub fn write_all(mut self, write_all: impl FnMut(Vec<T>, Done) + 'static) -> Self {
        self.write_all = Some(Box::new(write_all));
        self
    }

    /// The function that is called after the last write, before [`FINISH`](super::FINISH). Node's `final`.
    pub fn end(mut self, end: impl FnOnce(Done) + 'static) -> Self {
        self.end = Some(Box::new(end));
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
    pub fn build(mut self) -> Writable<T> {
        let base = Base::new(self.destroy.take(), self.auto_destroy);
        base.emitter.set_class("Writable");
        let construct = self.construct.take();
        let writable = self.build_on(&base);
        if let Some(construct) = construct {
            base.construct(construct);
        }
        writable
    }

    pub(super) fn build_on(self, base: &Rc<Base>) -> Writable<T> {
        let mark = self.mode.high_water_mark();
        let state = Rc::new_cyclic(|me| State {
            base: base.clone(),
            me: me.clone(),
            mode: self.mode,
            high_water_mark: self.high_water_mark.unwrap_or(mark),
            write_hook: RefCell::new(Some(self.write)),
            write_all_hook: RefCell::new(self.write_all),
            final_hook: RefCell::new(self.end),
            buffer: RefCell::default(),
            length: Cell::new(0),
            total: Cell::new(0),
            writing_length: Cell::new(0),
            writing_callback: RefCell::default(),
            done_inside: RefCell::default(),
            writing: Cell::new(false),
            in_write: Cell::new(false),
            sync: Cell::new(true),
            corked: Cell::new(0),
            need_drain: Cell::new(false),
            working_off: Cell::new(false),
            after_write_pending: Cell::new(false),
            ending: Cell::new(false),
            ended: Cell::new(false),
            final_called: Cell::new(false),
            prefinished: Cell::new(false),
            finished: Cell::new(false),
            pending_callbacks: Cell::new(0),
            on_finished: RefCell::default(),
        });
        let side: Weak<dyn WritableSide> = Rc::<State<T>>::downgrade(&state);
        base.has_writable(side);
        Writable {
            state,
            held: Held::default(),
        }
    }
}

impl<T: 'static> Writable<T> {
    /// A sink of bytes that are written by `write`.
    pub fn bytes(write: impl FnMut(T, Done) + 'static) -> WritableBuilder<T>
    where
        T: ByteChunk,
    {
        WritableBuilder::new(Mode::bytes(), Box::new(write))
    }

    /// A sink in object mode.
    pub fn objects(write: impl FnMut(T, Done) + 'static) -> WritableBuilder<T> {
        WritableBuilder::new(Mode::OBJECTS, Box::new(write))
    }

    pub(super) fn state(&self) -> &Rc<State<T>> {
        &self.state
    }

    /// Writes a chunk. `false`: enough waits; [`DRAIN`](super::DRAIN) says when it is gone. The chunk is taken all the
    /// same.
    ///
    /// After [`end`](Self::end), or once the stream is destroyed, this is an error of the stream.
    pub fn write(&self, chunk: impl IntoChunk<T>) -> bool {
        let written = self.state.write(chunk.into_chunk(), None);
        written.is_ok_and(|room| room)
    }

    /// Writes a chunk, and calls `callback` when it is written: by a tick if that was at once.
    //
    // N142.
    pub fn write_with(
        &self,
        chunk: impl IntoChunk<T>,
        callback: impl FnOnce(Result<(), Error>) + 'static,
    ) -> bool {
        let callback: Callback = Box::new(callback);
        let written = self.state.write(chunk.into_chunk(), Some(callback));
        written.is_ok_and(|room| room)
    }

    /// Nothing more will be written. Once all is written, the function `end` is called, then
    /// [`FINISH`](super::FINISH) is emitted.
    pub fn end(&self) {
        self.state.end(None, None);
    }

    /// Writes a last chunk, then ends.
    pub fn end_chunk(&self, chunk: impl IntoChunk<T>) {
        self.state.end(Some(chunk.into_chunk()), None);
    }

    /// Ends, and calls `callback` before [`FINISH`](super::FINISH).
    pub fn end_with(&self, callback: impl FnOnce(Result<(), Error>) + 'static) {
        self.state.end(None, Some(Box::new(callback)));
    }

    /// Writes a last chunk, then ends, and calls `callback` before [`FINISH`](super::FINISH).
    pub fn end_chunk_with(
        &self,
        chunk: impl IntoChunk<T>,
        callback: impl FnOnce(Result<(), Error>) + 'static,
    ) {
        let callback: Callback = Box::new(callback);
        self.state.end(Some(chunk.into_chunk()), Some(callback));
    }

    /// Keeps all that is written until [`uncork`](Self::uncork) was called as often.
    pub fn cork(&self) {
        self.state.corked.set(self.state.corked.get() + 1);
    }

    /// Undoes one [`cork`](Self::cork).
    pub fn uncork(&self) {
        self.state.uncork();
    }

    /// Whether more may be written.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.state.is_writable()
    }

    /// Whether the stream is full, and [`DRAIN`](super::DRAIN) will come.
    #[must_use]
    pub fn need_drain(&self) -> bool {
        self.state.need_drain()
    }

    /// Whether [`end`](Self::end) was called.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.state.ending.get()
    }

    /// Whether everything is written.
    #[must_use]
    pub fn finished(&self) -> bool {
        self.state.finished.get()
    }

    /// How much waits or is being written: bytes, or objects.
    #[must_use]
    pub fn length(&self) -> usize {
        self.state.length.get()
    }

    /// How many bytes the sink has taken so far; in object mode, objects. JavaScript: `writeStream.bytesWritten`.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.state.total.get()
    }

    /// How much may wait before the stream is full.
    #[must_use]
    pub fn high_water_mark(&self) -> usize {
        self.state.high_water_mark
    }

    /// Ends the stream at once; see [`Readable::destroy`](super::Readable::destroy). What waits is dropped, and its
    /// callbacks get an error.
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

impl<T: 'static> Emitter for Writable<T> {
    fn emitter(&self) -> &EventEmitter {
        &self.state.base.emitter
    }
}

impl<T: 'static> Clone for Writable<T> {
    fn clone(&self) -> Self {
        Self {
            state: self.state.clone(),
            held: self.held.clone(),
        }
    }
}

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

impl<T: 'static> fmt::Debug for WritableBuilder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WritableBuilder")
            .field("high_water_mark", &self.high_water_mark)
            .finish_non_exhaustive()
    }
}
