//! Streams with two sides.

use std::cell::RefCell;
use std::fmt;
use std::rc::{Rc, Weak};

use super::super::error::Error;
use super::super::events::{Emitter, EventEmitter};
use super::base::{Base, Done};
use super::chunk::{ByteChunk, Mode};
use super::readable::{self, Readable, ReadableBuilder};
use super::writable::{self, Writable, WritableBuilder};
use crate::task::next_tick;

/// A stream that is written `W` and read `R`: a socket, for example. A clone is the same stream.
///
/// Both sides share their events, and the stream is closed when both are at their end, or when either is destroyed.
///
/// # Examples
///
/// ```
/// use phaseloop::node::{run, stream::{Duplex, Readable, Writable}};
///
/// run(async {
///     let answers = Readable::objects();
///     let questions = Writable::objects(|question: String, done| {
///         println!("{question}");
///         done.ok();
///     });
///     let duplex = Duplex::new(answers, questions);
///     duplex.readable().on_data(|n: &u32| assert_eq!(*n, 42));
///     duplex.writable().write("how many?".to_owned());
///     duplex.readable().push(42);
///     duplex.readable().push_end();
///     duplex.writable().end();
/// });
/// ```
pub struct Duplex<W: 'static, R: 'static> {
    readable: Readable<R>,
    writable: Writable<W>,
}

impl<W: 'static, R: 'static> Duplex<W, R> {
    /// Puts two sides together. A side's end leaves the other one open.
    ///
    /// Of the functions `construct` and `destroy` of the two, the writable side's are taken, or else the readable side's.
    #[must_use]
    pub fn new(readable: ReadableBuilder<R>, writable: WritableBuilder<W>) -> Self {
        Self::build(readable, writable, true)
    }

    /// The same, but ends the writable side when the readable one has ended, as a socket does unless told otherwise.
    #[must_use]
    pub fn new_not_half_open(readable: ReadableBuilder<R>, writable: WritableBuilder<W>) -> Self {
        Self::build(readable, writable, false)
    }

    fn build(
        mut readable: ReadableBuilder<R>,
        mut writable: WritableBuilder<W>,
        allow_half_open: bool,
    ) -> Self {
        let destroy = writable.destroy.take().or(readable.destroy.take());
        let construct = writable.construct.take().or(readable.construct.take());
        let auto_destroy = readable.auto_destroy && writable.auto_destroy;
        let base = Base::new(destroy, auto_destroy);
        base.allow_half_open.set(allow_half_open);
        let (readable, writable) = (readable.build_on(&base), writable.build_on(&base));
        base.emitter.set_class("Duplex");
        base.emitter.watched_by(readable.watch());
        if let Some(construct) = construct {
            base.construct(construct);
        }
        Self {
            readable: Readable {
                held: base.hold(),
                ..readable
            },
            writable: Writable {
                held: base.hold(),
                ..writable
            },
        }
    }

    pub(in crate::node) fn downgrade(&self) -> WeakDuplex<W, R> {
        WeakDuplex {
            readable: Rc::downgrade(self.readable.state()),
            writable: Rc::downgrade(self.writable.state()),
        }
    }

    /// For what has a handle: 'close' is emitted by [`emit_close`](Self::emit_close), not by a tick.
    pub(in crate::node) fn closes_by_hand(&self) {
        self.readable.state().base.emits_close.set(false);
    }

    pub(in crate::node) fn emit_close(&self) {
        self.readable.state().base.emit_close();
    }

    /// The side that is read.
    #[must_use]
    pub fn readable(&self) -> &Readable<R> {
        &self.readable
    }

    /// The side that is written.
    #[must_use]
    pub fn writable(&self) -> &Writable<W> {
        &self.writable
    }

    /// Whether the writable side stays open when the readable one has ended. JavaScript: `duplex.allowHalfOpen`.
    #[must_use]
    pub fn allow_half_open(&self) -> bool {
        self.readable.state().base.allow_half_open.get()
    }

    /// Sets [`allow_half_open`](Self::allow_half_open), before the readable side ends. JavaScript: `duplex.allowHalfOpen =
    /// false`.
    pub fn set_allow_half_open(&self, allow: bool) {
        self.readable.state().base.allow_half_open.set(allow);
    }

    /// Ends both sides at once; see [`Readable::destroy`].
    pub fn destroy(&self, error: Option<Error>) {
        self.readable.destroy(error);
    }
}

/// A [`Duplex`] that is not kept.
pub(in crate::node) struct WeakDuplex<W: 'static, R: 'static> {
    readable: Weak<readable::State<R>>,
    writable: Weak<writable::State<W>>,
}

impl<W: 'static, R: 'static> WeakDuplex<W, R> {
    pub(in crate::node) fn upgrade(&self) -> Option<Duplex<W, R>> {
        let (readable, state) = (self.readable.upgrade()?, self.writable.upgrade()?);
        let held = state.base.hold();
        Some(Duplex {
            readable: readable.handle(),
            writable: Writable { state, held },
        })
    }
}

impl<W: 'static, R: 'static> Emitter for Duplex<W, R> {
    fn emitter(&self) -> &EventEmitter {
        self.readable.emitter()
    }
}

impl<W: 'static, R: 'static> Clone for Duplex<W, R> {
    fn clone(&self) -> Self {
        Self {
            readable: self.readable.clone(),
            writable: self.writable.clone(),
        }
    }
}

impl<W: 'static, R: 'static> fmt::Debug for Duplex<W, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Duplex")
            .field("readable", &self.readable)
            .field("writable", &self.writable)
            .finish()
    }
}

/// What a transform makes of a chunk, or of the end.
#[must_use = "the stream waits until it is told"]
pub struct Transformed<R: 'static> {
    readable: Readable<R>,
    done: Box<dyn FnOnce(Result<(), Error>)>,
}

impl<R: 'static> Transformed<R> {
    /// Gives a chunk to the readable side. `false`: it has enough.
    pub fn push(&self, chunk: R) -> bool {
        self.readable.push(chunk)
    }

    /// The chunk is done with.
    pub fn ok(self) {
        (self.done)(Ok(()));
    }

    /// The chunk is done with; this is what has become of it.
    pub fn ok_with(self, chunk: R) {
        self.push(chunk);
        self.ok();
    }

    /// It has failed: ends the stream.
    pub fn fail(self, error: impl Into<Error>) {
        (self.done)(Err(error.into()));
    }
}

impl<R: 'static> fmt::Debug for Transformed<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Transformed").field(&self.readable).finish()
    }
}

type TransformHook<W, R> = Box<dyn FnMut(W, Transformed<R>)>;
type FlushHook<R> = Box<dyn FnOnce(Transformed<R>)>;

/// A duplex stream whose readable side is made of what is written.
///
/// # Examples
///
/// ```
/// use phaseloop::node::{run, stream::Transform};
///
/// run(async {
///     let upper = Transform::objects(|text: String, out| out.ok_with(text.to_uppercase())).build();
///     upper.readable().on_data(|text| assert_eq!(text, "HELLO"));
///     upper.writable().end_chunk("hello");
/// });
/// ```
pub struct Transform<W: 'static, R: 'static> {
    duplex: Duplex<W, R>,
}

/// Makes a [`Transform`].
#[must_use = "a builder does nothing until `build`"]
pub struct TransformBuilder<W: 'static, R: 'static> {
    read_mode: Mode<R>,
    write_mode: Mode<W>,
    transform: TransformHook<W, R>,
    flush: Option<FlushHook<R>>,
    readable_mark: Option<usize>,
    writable_mark: Option<usize>,
}

impl<W: 'static, R: 'static> Transform<W, R> {
    /// A transform of bytes. `transform` is called with one chunk at a time, and waits while nobody reads.
    pub fn bytes(transform: impl FnMut(W, Transformed<R>) + 'static) -> TransformBuilder<W, R>
    where
        W: ByteChunk,
        R: ByteChunk,
    {
        TransformBuilder::new(Mode::bytes(), Mode::bytes(), Box::new(transform))
    }

    /// A transform in object mode.
    pub fn objects(transform: impl FnMut(W, Transformed<R>) + 'static) -> TransformBuilder<W, R> {
        TransformBuilder::new(Mode::OBJECTS, Mode::OBJECTS, Box::new(transform))
    }

    /// A transform that is written bytes and read objects. JavaScript: `new Transform({ readableObjectMode: true })`.
    pub fn bytes_to_objects(
        transform: impl FnMut(W, Transformed<R>) + 'static,
    ) -> TransformBuilder<W, R>
    where
        W: ByteChunk,
    {
        TransformBuilder::new(Mode::OBJECTS, Mode::bytes(), Box::new(transform))
    }

    /// A transform that is written objects and read bytes. JavaScript: `new Transform({ writableObjectMode: true })`.
    pub fn objects_to_bytes(
        transform: impl FnMut(W, Transformed<R>) + 'static,
    ) -> TransformBuilder<W, R>
    where
        R: ByteChunk,
    {
        TransformBuilder::new(Mode::bytes(), Mode::OBJECTS, Box::new(transform))
    }

    /// The stream itself.
    #[must_use]
    pub fn duplex(&self) -> &Duplex<W, R> {
        &self.duplex
    }

    /// The side that is read.
    #[must_use]
    pub fn readable(&self) -> &Readable<R> {
        self.duplex.readable()
    }

    /// The side that is written.
    #[must_use]
    pub fn writable(&self) -> &Writable<W> {
        self.duplex.writable()
    }
}

impl<T: 'static> Transform<T, T> {
    /// A stream that gives out what it is given. Node's `PassThrough`.
    #[must_use]
    pub fn pass_through() -> Self {
        Self::objects(|chunk, out| out.ok_with(chunk)).build()
    }
}

impl<W: 'static, R: 'static> TransformBuilder<W, R> {
    fn new(read_mode: Mode<R>, write_mode: Mode<W>, transform: TransformHook<W, R>) -> Self {
        Self {
            read_mode,
            write_mode,
            transform,
            flush: None,
            readable_mark: None,
            writable_mark: None,
        }
    }

    /// The function that is called after the last chunk, for what is left.
    pub fn flush(mut self, flush: impl FnOnce(Transformed<R>) + 'static) -> Self {
        self.flush = Some(Box::new(flush));
        self
    }

    /// How much either side keeps.
    pub fn high_water_mark(mut self, mark: usize) -> Self {
        self.readable_mark = Some(mark);
        self.writable_mark = Some(mark);
        self
    }

    /// How much the readable side keeps. JavaScript: `{ readableHighWaterMark }`.
    pub fn readable_high_water_mark(mut self, mark: usize) -> Self {
        self.readable_mark = Some(mark);
        self
    }

    /// How much the writable side keeps. JavaScript: `{ writableHighWaterMark }`.
    pub fn writable_high_water_mark(mut self, mark: usize) -> Self {
        self.writable_mark = Some(mark);
        self
    }

    /// Makes the stream.
    #[must_use]
    pub fn build(self) -> Transform<W, R> {
        let link = Rc::new(Link {
            readable: RefCell::new(None),
            waiting: RefCell::new(None),
        });
        let reads = link.clone();
        let mut readable = ReadableBuilder::new(self.read_mode).read(move |_, _| {
            let waiting = reads.waiting.take();
            if let Some(done) = waiting {
                done.ok();
            }
        });
        let (writes, mut transform) = (link.clone(), self.transform);
        let write = Box::new(move |chunk, done| writes.transform(&mut transform, chunk, done));
        let (ends, flush) = (link.clone(), self.flush);
        let mut writable =
            WritableBuilder::new(self.write_mode, write).end(move |done| ends.flush(flush, done));
        readable.high_water_mark = self.readable_mark;
        writable.high_water_mark = self.writable_mark;
        let duplex = Duplex::new(readable, writable);
        // A transform pushes from its `write`, not from its `read`.
        duplex.readable().state().sync.set(false);
        let weak = Rc::downgrade(duplex.readable().state());
        link.readable.replace(Some(weak));
        Transform { duplex }
    }
}

/// Between the two sides of a transform.
struct Link<R: 'static> {
    readable: RefCell<Option<Weak<readable::State<R>>>>,
    /// A write that waits until somebody reads.
    waiting: RefCell<Option<Done>>,
}

impl<R: 'static> Link<R> {
    fn readable(&self) -> Option<Readable<R>> {
        let weak = self.readable.borrow();
        let state = weak.as_ref()?.upgrade()?;
        Some(state.handle())
    }

    fn transform<W>(self: &Rc<Self>, transform: &mut TransformHook<W, R>, chunk: W, done: Done) {
        let Some(readable) = self.readable() else {
            return;
        };
        let before = readable.length();
        let (link, side) = (self.clone(), readable.clone());
        let done = Box::new(move |result: Result<(), Error>| {
            if result.is_err() {
                return done.call(result);
            }
            let ended = side.state().ended.get();
            if ended {
                // The function has ended the readable side itself: that has to be seen first.
                next_tick(move || done.ok());
            } else if is_ended(&side)
                || side.length() == before
                || side.length() < side.high_water_mark()
            {
                done.ok();
            } else {
                link.waiting.replace(Some(done));
            }
        });
        transform(chunk, Transformed { readable, done });
    }

    fn flush(self: &Rc<Self>, flush: Option<FlushHook<R>>, done: Done) {
        let Some(readable) = self.readable() else {
            return done.ok();
        };
        let Some(flush) = flush.filter(|_| !readable.destroyed()) else {
            readable.push_end();
            return done.ok();
        };
        let side = readable.clone();
        let done = Box::new(move |result: Result<(), Error>| {
            if result.is_ok() {
                side.push_end();
            }
            done.call(result);
        });
        flush(Transformed { readable, done });
    }
}

/// Whether the writable side of the same stream was ended.
fn is_ended<R: 'static>(readable: &Readable<R>) -> bool {
    let writable = readable.state().base.writable();
    writable.is_some_and(|side| side.ended())
}

impl<W: 'static, R: 'static> Emitter for Transform<W, R> {
    fn emitter(&self) -> &EventEmitter {
        self.duplex.emitter()
    }
}

impl<W: 'static, R: 'static> Clone for Transform<W, R> {
    fn clone(&self) -> Self {
        Self {
            duplex: self.duplex.clone(),
        }
    }
}

impl<W: 'static, R: 'static> fmt::Debug for Transform<W, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.duplex.fmt(f)
    }
}

impl<W: 'static, R: 'static> fmt::Debug for TransformBuilder<W, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransformBuilder")
            .field("readable_high_water_mark", &self.readable_mark)
            .field("writable_high_water_mark", &self.writable_mark)
            .finish_non_exhaustive()
    }
}
