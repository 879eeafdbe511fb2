//! Streams: sources, sinks and transforms, with backpressure and the event order of Node.
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
//! | `finished(stream, callback)` | [`finished`] |
//! | `Readable.from(iterable)` | [`Readable::from_iter`], [`Readable::from_stream`] |
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
//! The counterparts in plain Rust are [`Stream`](crate::stream::Stream), `AsyncRead`, `AsyncWrite`
//! and [`io::copy`](crate::io::copy).
//!
//! Streams need a running loop, since most of their work is queued in the next-tick lane. A closed
//! stream drops its listeners and functions, because they may hold the stream itself in a reference
//! cycle.

mod adapters;
mod base;
mod bridge;
mod chunk;
mod duplex;
mod encoding;
mod finished;
mod foreign;
mod gather;
mod iterate;
mod operators;
mod pipe;
mod pipeline;
mod readable;
mod shared;
mod transform;
mod writable;

use super::events::Event;

pub(in crate::node) use self::base::{Base, Callback};
pub use self::base::{Done, StreamId};
pub use self::bridge::{Reader, Writer};
pub use self::chunk::{ByteChunk, IntoChunk};
pub use self::duplex::Duplex;
pub(in crate::node) use self::duplex::WeakDuplex;
pub use self::finished::{AnyStream, Finished, FinishedOptions, finished, finished_with};
pub(in crate::node) use self::foreign::Sink;
pub(in crate::node) use self::gather::{write_chunks, write_chunks_blocking};
pub use self::iterate::Chunks;
pub(in crate::node) use self::pipe::OpenPipes;
pub use self::pipeline::{AsDuplex, Pipeline, PipelineEnd, pipeline};
pub use self::readable::{Readable, ReadableBuilder};
pub use self::transform::{Transform, TransformBuilder, Transformed};
pub use self::writable::{Writable, WritableBuilder};

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
