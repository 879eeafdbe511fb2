//! Streams whose readable side is computed from their writable side.

use std::cell::RefCell;
use std::fmt;
use std::rc::{Rc, Weak};

use super::base::Done;
use super::chunk::{ByteChunk, Mode};
use super::duplex::Duplex;
use super::readable::{self, Readable, ReadableBuilder};
use super::shared::{Options, impl_options};
use super::writable::{Writable, WritableBuilder};
use crate::error::Error;
use crate::events::{Emitter, EventEmitter};
use phaseloop::task::next_tick;

/// Passes the output of a transform to its readable side, and reports that a chunk or the flush is
/// done. Node's `callback` argument of `transform` and `flush`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, stream::Transform};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let words = Transform::objects(|line: String, out| {
///             for word in line.split(' ') {
///                 out.push(word.to_owned());
///             }
///             out.ok();
///         })
///         .build();
///         words.writable().end("two words");
///         assert_eq!(words.readable().to_array().await.unwrap(), ["two", "words"]);
///     })
/// }
/// ```
#[must_use = "the stream waits until `ok`, `ok_with` or `fail` is called"]
pub struct Transformed<R: 'static> {
    readable: Readable<R>,
    done: Box<dyn FnOnce(Result<(), Error>)>,
    #[cfg_attr(
        not(feature = "zlib"),
        expect(dead_code, reason = "only `push_then` waits by it")
    )]
    link: Rc<Link<R>>,
}

impl<R: 'static> Transformed<R> {
    /// Pushes a chunk to the readable side. Returns `false` if its buffer is full.
    pub fn push(&self, chunk: R) -> bool {
        self.readable.push(chunk)
    }

    /// Reports that the chunk is transformed.
    pub fn ok(self) {
        (self.done)(Ok(()));
    }

    /// Pushes a last chunk and reports that the chunk is transformed. JavaScript: `callback(null,
    /// chunk)`.
    pub fn ok_with(self, chunk: R) {
        self.push(chunk);
        self.ok();
    }

    /// Pushes a chunk, and continues at once or, if the buffer is full, when the readable side is
    /// read again.
    #[cfg(feature = "zlib")]
    pub(crate) fn push_then(self, chunk: R, next: impl FnOnce(Self) + 'static) {
        if self.push(chunk) || self.readable.destroyed() {
            return next(self);
        }
        let Self {
            readable,
            done,
            link,
        } = self;
        // Weak, since the stream holds what waits.
        let (state, weak) = (Rc::downgrade(readable.state()), Rc::downgrade(&link));
        link.waiting.replace(Some(Box::new(move || {
            if let (Some(state), Some(link)) = (state.upgrade(), weak.upgrade()) {
                let readable = Readable::of(state);
                next(Self {
                    readable,
                    done,
                    link,
                });
            }
        })));
    }

    /// Returns the readable side.
    #[cfg(feature = "zlib")]
    pub(crate) fn readable(&self) -> &Readable<R> {
        &self.readable
    }

    /// Reports a failure, which destroys the stream.
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

/// A duplex stream whose readable side is computed from its writable side. JavaScript:
/// `stream.Transform`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, stream::Transform};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let upper = Transform::objects(|text: String, out| out.ok_with(text.to_uppercase()));
///         let upper = upper.build();
///         upper.readable().on_data(|text| assert_eq!(text, "HELLO"));
///         upper.writable().end("hello");
///     })
/// }
/// ```
pub struct Transform<W: 'static, R: 'static> {
    duplex: Duplex<W, R>,
}

/// Builds a [`Transform`].
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, stream::Transform};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let framed = Transform::objects(|text: String, out| out.ok_with(text))
///             .high_water_mark(4)
///             .flush(|out| out.ok_with("end".to_owned()))
///             .build();
///         framed.writable().end("begin");
///         assert_eq!(framed.readable().to_array().await.unwrap(), ["begin", "end"]);
///     })
/// }
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct TransformBuilder<W: 'static, R: 'static> {
    read_mode: Mode<R>,
    write_mode: Mode<W>,
    transform: TransformHook<W, R>,
    flush: Option<FlushHook<R>>,
    readable_mark: Option<usize>,
    writable_mark: Option<usize>,
    options: Options,
    /// Whether the writable side finishes before the flush.
    finishes_first: bool,
}

impl<W: 'static, R: 'static> Transform<W, R> {
    /// Creates a transform of bytes. `transform` is called with one chunk at a time, and is not
    /// called while the readable side is full.
    pub fn bytes(transform: impl FnMut(W, Transformed<R>) + 'static) -> TransformBuilder<W, R>
    where
        W: ByteChunk,
        R: ByteChunk,
    {
        TransformBuilder::new(Mode::bytes(), Mode::bytes(), Box::new(transform))
    }

    /// Creates a transform in object mode.
    pub fn objects(transform: impl FnMut(W, Transformed<R>) + 'static) -> TransformBuilder<W, R> {
        TransformBuilder::new(Mode::OBJECTS, Mode::OBJECTS, Box::new(transform))
    }

    /// Creates a transform with bytes on the writable side and objects on the readable side.
    /// JavaScript: `new Transform({ readableObjectMode: true })`.
    pub fn bytes_to_objects(
        transform: impl FnMut(W, Transformed<R>) + 'static,
    ) -> TransformBuilder<W, R>
    where
        W: ByteChunk,
    {
        TransformBuilder::new(Mode::OBJECTS, Mode::bytes(), Box::new(transform))
    }

    /// Creates a transform with objects on the writable side and bytes on the readable side.
    /// JavaScript: `new Transform({ writableObjectMode: true })`.
    pub fn objects_to_bytes(
        transform: impl FnMut(W, Transformed<R>) + 'static,
    ) -> TransformBuilder<W, R>
    where
        R: ByteChunk,
    {
        TransformBuilder::new(Mode::bytes(), Mode::OBJECTS, Box::new(transform))
    }

    /// Returns the duplex stream.
    #[must_use]
    pub fn duplex(&self) -> &Duplex<W, R> {
        &self.duplex
    }

    /// Returns the readable side.
    #[must_use]
    pub fn readable(&self) -> &Readable<R> {
        self.duplex.readable()
    }

    /// Returns the writable side.
    #[must_use]
    pub fn writable(&self) -> &Writable<W> {
        self.duplex.writable()
    }
}

impl<T: 'static> Transform<T, T> {
    /// Creates a transform that passes its chunks on unchanged. JavaScript: `new PassThrough()`.
    #[must_use]
    pub fn pass_through() -> Self {
        Self::objects(|chunk, out| out.ok_with(chunk)).build()
    }
}

impl_options!(TransformBuilder<W, R>);

impl<W: 'static, R: 'static> TransformBuilder<W, R> {
    fn new(read_mode: Mode<R>, write_mode: Mode<W>, transform: TransformHook<W, R>) -> Self {
        Self {
            read_mode,
            write_mode,
            transform,
            flush: None,
            readable_mark: None,
            writable_mark: None,
            options: Options::default(),
            finishes_first: false,
        }
    }

    /// Sets the function that is called after the last chunk, to push the remaining output.
    /// JavaScript: `{ flush }`.
    pub fn flush(mut self, flush: impl FnOnce(Transformed<R>) + 'static) -> Self {
        self.flush = Some(Box::new(flush));
        self
    }

    /// Sets the high water mark of both sides. JavaScript: `{ highWaterMark }`.
    pub fn high_water_mark(mut self, mark: usize) -> Self {
        self.readable_mark = Some(mark);
        self.writable_mark = Some(mark);
        self
    }

    /// Sets the high water mark of the readable side. JavaScript: `{ readableHighWaterMark }`.
    pub fn readable_high_water_mark(mut self, mark: usize) -> Self {
        self.readable_mark = Some(mark);
        self
    }

    /// Sets the high water mark of the writable side. JavaScript: `{ writableHighWaterMark }`.
    pub fn writable_high_water_mark(mut self, mark: usize) -> Self {
        self.writable_mark = Some(mark);
        self
    }

    /// Lets the writable side finish before the flush, as zlib's streams do.
    #[cfg(feature = "zlib")]
    pub(crate) fn finish_first(mut self) -> Self {
        self.finishes_first = true;
        self
    }

    /// Creates the stream.
    #[must_use]
    pub fn build(self) -> Transform<W, R> {
        let link = Rc::new(Link {
            readable: RefCell::new(None),
            waiting: RefCell::new(None),
        });
        let reads = link.clone();
        let mut readable = ReadableBuilder::new(self.read_mode).read(move |_, _| {
            let waiting = reads.waiting.take();
            if let Some(go_on) = waiting {
                go_on();
            }
        });
        let (writes, mut transform) = (link.clone(), self.transform);
        let write = Box::new(move |chunk, done| writes.transform(&mut transform, chunk, done));
        readable.options = self.options;
        let (ends, flush, finishes_first) = (link.clone(), self.flush, self.finishes_first);
        if finishes_first {
            // More output that waits is not needed any more.
            let destroyed = link.clone();
            readable = readable.destroy(move |error, done| {
                drop(destroyed.waiting.take());
                done.pass(error);
            });
        }
        let mut writable =
            WritableBuilder::new(self.write_mode, write).end(move |done| match finishes_first {
                true => {
                    done.ok();
                    ends.flush_finished(flush);
                }
                false => ends.flush(flush, done),
            });
        readable.high_water_mark = self.readable_mark;
        writable.high_water_mark = self.writable_mark;
        let duplex = Duplex::new(readable, writable);
        // A transform pushes from its `write` function, so a push is not inside a call of `read`.
        duplex.readable().state().sync.set(false);
        let weak = Rc::downgrade(duplex.readable().state());
        link.readable.replace(Some(weak));
        Transform { duplex }
    }
}

/// Connects the two sides of a transform.
struct Link<R: 'static> {
    readable: RefCell<Option<Weak<readable::State<R>>>>,
    /// What waits until the readable side has room: a write, or more output of it.
    waiting: RefCell<Option<Box<dyn FnOnce()>>>,
}

impl<R: 'static> Link<R> {
    fn readable(&self) -> Option<Readable<R>> {
        let weak = self.readable.borrow();
        let state = weak.as_ref()?.upgrade()?;
        Some(Readable::of(state))
    }

    fn transform<W>(self: &Rc<Self>, transform: &mut TransformHook<W, R>, chunk: W, done: Done) {
        let Some(readable) = self.readable() else {
            return;
        };
        let before = readable.length();
        // Weak: `Transformed` keeps the stream alive, and what waits is held by the stream.
        let (link, side, done) = (
            Rc::downgrade(self),
            Rc::downgrade(readable.state()),
            done.downgrade(),
        );
        let done = Box::new(move |result: Result<(), Error>| {
            if result.is_err() {
                return done.call(result);
            }
            let (Some(link), Some(state)) = (link.upgrade(), side.upgrade()) else {
                return;
            };
            let side = Readable::of(state);
            let ended = side.state().ended.get();
            if ended {
                // The user's function has ended the readable side itself. The write completes on a
                // tick, after that end was processed.
                next_tick(move || {
                    done.ok();
                    drop(side);
                });
            } else if is_ended(&side)
                || side.length() == before
                || side.length() < side.high_water_mark()
            {
                done.ok();
            } else {
                link.waiting.replace(Some(Box::new(move || done.ok())));
            }
        });
        let link = self.clone();
        transform(
            chunk,
            Transformed {
                readable,
                done,
                link,
            },
        );
    }

    fn flush(self: &Rc<Self>, flush: Option<FlushHook<R>>, done: Done) {
        let Some(readable) = self.readable() else {
            return done.ok();
        };
        let Some(flush) = flush.filter(|_| !readable.destroyed()) else {
            readable.push_end();
            return done.ok();
        };
        let (side, done) = (Rc::downgrade(readable.state()), done.downgrade());
        let done = Box::new(move |result: Result<(), Error>| {
            let side = side.upgrade().map(Readable::of);
            if let Some(side) = side.filter(|_| result.is_ok()) {
                side.push_end();
            }
            done.call(result);
        });
        let link = self.clone();
        flush(Transformed {
            readable,
            done,
            link,
        });
    }

    /// Flushes a stream whose writable side has finished.
    fn flush_finished(self: &Rc<Self>, flush: Option<FlushHook<R>>) {
        let link = Rc::downgrade(self);
        let done = Done::new(move |result: Result<(), Error>| {
            let readable = link.upgrade().and_then(|link| link.readable());
            if let (Err(error), Some(readable)) = (result, readable) {
                readable.destroy(Some(error));
            }
        });
        self.flush(flush, done);
    }
}

/// Returns whether the writable side of the stream was ended.
fn is_ended<R: 'static>(readable: &Readable<R>) -> bool {
    let writable = readable.state().base.writable();
    writable.is_some_and(|side| side.ended())
}

impl<W: 'static, R: 'static> Emitter for Transform<W, R> {
    fn emitter(&self) -> &EventEmitter {
        self.duplex.emitter()
    }
}

crate::weak_this!(Transform < W, R > { duplex });

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
