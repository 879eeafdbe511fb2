//! Streams: sources, sinks and transforms, with backpressure and the event order of Node.
//!
//! ```
//! use phaseloop_node::{Exit, run, stream::{Readable, Transform, Writable, pipeline}};
//!
//! fn main() -> Exit<()> {
//!     run(async {
//!         let source = Readable::from_iter(["a", "b"]);
//!         let upper = Transform::objects(|text: &str, out| {
//!             out.ok_with(text.to_uppercase());
//!         })
//!         .build();
//!         let sink = Writable::objects(|text: String, done| {
//!             println!("{text}");
//!             done.ok();
//!         })
//!         .build();
//!         pipeline(&source).through(&upper).into(&sink).await.unwrap();
//!     })
//! }
//! ```
//!
//! | Node | here |
//! |---|---|
//! | `new Readable({ read })` | [`Readable::bytes`] |
//! | `new Readable({ read, objectMode: true })` | [`Readable::objects`] |
//! | `new Writable({ write, final, destroy })` | [`Writable::bytes`], [`Writable::objects`] |
//! | `new Duplex(..)`, `new Transform(..)` | [`Duplex`], [`Transform`] |
//! | `new PassThrough()` | [`Transform::pass_through`] |
//! | `readable.on('data', ..)` | [`Readable::on_data`] |
//! | `readable.setEncoding('utf8')` | [`Readable::set_encoding`], [`Readable::on_text`] |
//! | `readable.pipe(writable)` | [`Readable::pipe`] |
//! | `pipeline(a, b, c, callback)` | [`pipeline(&a).through(&b).into(&c).then(..)`](pipeline) |
//! | `await pipeline(a, b, c)` | [`pipeline(&a).through(&b).into(&c).await`](pipeline) |
//! | `pipeline(a, async function* (source) { .. }, c)` | [`Pipeline::generator`] |
//! | `pipeline(a, async (source) => { .. })` | [`Pipeline::run`] |
//! | `pipeline(async function* () { .. }, c)` | [`pipeline_from`] |
//! | `finished(stream, callback)` | [`finished`] |
//! | `Readable.from(iterable)` | [`Readable::from_iter`], [`Readable::from_stream`] |
//! | `Readable.from(text)` | [`Readable::from_chunk`] |
//! | `Duplex.from({ readable, writable })` | [`Duplex::from_halves`] |
//! | `compose(a, b)` | [`compose(&a).through(&b).build()`](compose) |
//! | `addAbortSignal(signal, stream)` | [`add_abort_signal`] |
//! | `duplexPair()` | [`duplex_pair`] |
//! | `await text(stream)` of `stream/consumers` | [`consumers::text`], [`consumers::buffer`] |
//! | `readable.map(f)`, `filter`, `flatMap` | [`Readable::map`], [`Readable::filter`], … |
//! | `readable.take(n)`, `drop` | [`Readable::take`], [`Readable::drop`] |
//! | `await readable.toArray()`, `forEach`, `reduce`, … | [`Readable::to_array`], … |
//! | `for await (const chunk of readable)` | [`Readable::chunks`] |
//! | a stream over a socket or a file | [`Readable::from_reader`], [`Writable::from_writer`] |
//! | a stream as `AsyncRead`, `AsyncWrite` | [`Readable::into_reader`], [`Writable::into_writer`] |
//!
//! A chunk is a value of any type. In byte mode a chunk is a `Vec<u8>` or a `String` and counts by
//! its length; a read returns all buffered bytes as one chunk. In object mode each chunk counts
//! one.
//!
//! The counterparts in plain Rust are [`Stream`](phaseloop::stream::Stream), `AsyncRead`,
//! `AsyncWrite` and [`io::copy`](phaseloop::io::copy).
//!
//! Streams need a running loop, since most of their work is queued in the next-tick lane. A closed
//! stream drops its listeners and functions, because they may hold the stream itself in a reference
//! cycle.

mod abort;
mod adapters;
mod base;
mod bridge;
mod chunk;
pub mod consumers;
mod duplex;
mod encoding;
mod finished;
mod foreign;
mod gather;
mod iterate;
mod joined;
mod links;
mod operators;
mod pair;
mod pipe;
mod pipeline;
mod pump;
mod readable;
mod shared;
mod transform;
mod writable;

use super::events::Event;

pub use self::abort::add_abort_signal;
pub(crate) use self::adapters::close_of_nothing;
pub(crate) use self::base::{Base, Callback, destroyed};
pub use self::base::{Done, StreamId};
pub use self::bridge::{Reader, Writer};
pub(crate) use self::chunk::BYTES as HIGH_WATER_MARK;
pub use self::chunk::{ByteChunk, IntoChunk, IntoLast, LastChunk, NoChunk};
pub use self::duplex::Duplex;
pub(crate) use self::duplex::WeakDuplex;
pub use self::finished::{AnyStream, Finished, FinishedOptions, finished, finished_with};
pub(crate) use self::foreign::Sink;
pub(crate) use self::gather::{write_chunks, write_chunks_blocking};
pub use self::iterate::Chunks;
pub use self::joined::{Composition, compose};
pub(crate) use self::links::Links;
pub use self::pair::duplex_pair;
pub use self::pipeline::{AsDuplex, Pipeline, PipelineEnd, pipeline};
pub use self::pump::{GeneratorPipeline, pipeline_from};
pub(crate) use self::readable::Source;
pub use self::readable::{Readable, ReadableBuilder};
pub use self::transform::{Transform, TransformBuilder, Transformed};
pub(crate) use self::writable::Device;
pub use self::writable::{Writable, WritableBuilder};

/// Chains and ends of streams as values to await: Node's `stream/promises`.
///
/// The functions are those of [`stream`](super): what they return can be awaited, or gets a
/// callback.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, stream::{Readable, Writable, promises::pipeline}};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let sink = Writable::objects(|_: u32, done| done.ok()).build();
///         pipeline(&Readable::from_iter([1, 2])).into(&sink).await.unwrap();
///     })
/// }
/// ```
pub mod promises {
    pub use super::{finished, finished_with, pipeline, pipeline_from};
}

/// A readable stream has been read to EOF. JavaScript: `'end'`.
pub const END: Event<()> = Event::new("end");

/// A readable stream has data to read, or has reached EOF. JavaScript: `'readable'`.
pub const READABLE: Event<()> = Event::new("readable");

/// A readable stream has started to flow. JavaScript: `'resume'`.
pub const RESUME: Event<()> = Event::new("resume");

/// A readable stream has stopped flowing. JavaScript: `'pause'`.
pub const PAUSE: Event<()> = Event::new("pause");

/// A writable stream was ended, and every chunk is written. JavaScript: `'finish'`.
pub const FINISH: Event<()> = Event::new("finish");

/// A writable stream that was full accepts more chunks. JavaScript: `'drain'`.
pub const DRAIN: Event<()> = Event::new("drain");

/// A readable stream was piped into this stream. JavaScript: `'pipe'`.
pub const PIPE: Event<StreamId> = Event::new("pipe");

/// A readable stream is no longer piped into this stream. JavaScript: `'unpipe'`.
pub const UNPIPE: Event<StreamId> = Event::new("unpipe");

/// The stream is closed, and its resources are released. The stream emits nothing after this event.
/// JavaScript: `'close'`.
pub const CLOSE: Event<()> = Event::new("close");

/// A writable stream was ended and every chunk was passed on; [`FINISH`] follows. JavaScript:
/// `'prefinish'`.
//
// A transform flushes here.
pub const PREFINISH: Event<()> = Event::new("prefinish");
