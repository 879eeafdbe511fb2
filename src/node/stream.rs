//! Streams: sources, sinks and what is between them, with backpressure and Node's order of events.
//!
//! | Node | here |
//! |---|---|
//! | `new Readable({ read })`, `{ objectMode: true }` | [`Readable::bytes`], [`Readable::objects`] |
//! | `new Writable({ write, final, destroy })` | [`Writable::bytes`], [`Writable::objects`] |
//! | `new Duplex(..)`, `new Transform(..)`, `new PassThrough()` | [`Duplex`], [`Transform`], [`Transform::pass_through`] |
//! | `readable.on('data', ..)` | [`Readable::on_data`] |
//! | `readable.setEncoding('utf8').on('data', ..)` | [`Readable::set_encoding`], [`Readable::on_text`] |
//! | `readable.pipe(writable)` | [`Readable::pipe`] |
//! | `pipeline(a, b, c, callback)` | [`pipeline(&a).through(&b).into(&c).then(..)`](pipeline), or awaited |
//! | `finished(stream, callback)` | [`finished`] |
//! | `Readable.from(iterable)` | [`Readable::from_iter`], [`Readable::from_stream`] |
//! | `readable.map(f)`, `filter`, `flatMap`, `take`, `drop` | [`Readable::map`], [`filter`](Readable::filter), … |
//! | `await readable.toArray()`, `forEach`, `reduce`, `find`, `some`, `every` | [`Readable::to_array`], … |
//! | `for await (const chunk of readable)` | [`Readable::chunks`] |
//! | a socket or a file | [`Readable::from_reader`], [`Writable::from_writer`]; the other way round [`Readable::into_reader`], [`Writable::into_writer`] |
//!
//! A chunk is a value of any type. In byte mode it is a `Vec<u8>` or a `String`, is counted by its length, and what has
//! piled up is read in one piece; in object mode it counts one.
//!
//! In plain Rust: [`Stream`](crate::stream::Stream), `AsyncRead`, `AsyncWrite` and [`io::copy`](crate::io::copy).
//!
//! All of it needs a running loop: most of what streams do, they do by a tick. A stream that is closed lets go of its
//! listeners and functions, which may hold the stream itself.

mod adapters;
mod base;
mod bridge;
mod chunk;
mod duplex;
mod encoding;
mod finished;
mod gather;
mod iterate;
mod operators;
mod pipe;
mod pipeline;
mod readable;
mod reading;
mod writable;
mod writing;

use super::events::Event;

pub use self::base::{Done, StreamId};
pub use self::bridge::{Reader, Writer};
pub use self::chunk::{ByteChunk, IntoChunk};
pub(in crate::node) use self::duplex::WeakDuplex;
pub use self::duplex::{Duplex, Transform, TransformBuilder, Transformed};
pub use self::finished::{AnyStream, Finished, FinishedOptions, finished, finished_with};
pub(in crate::node) use self::gather::{write_chunks, write_chunks_blocking};
pub use self::iterate::Chunks;
pub(in crate::node) use self::pipe::OpenPipes;
pub use self::pipeline::{AsDuplex, Pipeline, PipelineEnd, pipeline};
pub use self::readable::{Readable, ReadableBuilder};
pub use self::writable::{Writable, WritableBuilder};

/// A readable stream has been read to its end.
pub const END: Event<()> = Event::new("end");

/// A readable stream has something to be read, or has come to its end.
pub const READABLE: Event<()> = Event::new("readable");

/// A readable stream begins to flow.
pub const RESUME: Event<()> = Event::new("resume");

/// A readable stream stops flowing.
pub const PAUSE: Event<()> = Event::new("pause");

/// A writable stream has written everything, and was told to end.
pub const FINISH: Event<()> = Event::new("finish");

/// A writable stream that was full takes more.
pub const DRAIN: Event<()> = Event::new("drain");

/// A readable stream is piped into this one.
pub const PIPE: Event<StreamId> = Event::new("pipe");

/// A readable stream is no longer piped into this one.
pub const UNPIPE: Event<StreamId> = Event::new("unpipe");

/// The stream is over, and what it used is closed. Nothing is emitted after this.
pub const CLOSE: Event<()> = Event::new("close");

/// All is written but the functions of the end have not run. A transform flushes here.
const PREFINISH: Event<()> = Event::new("prefinish");
