//! Codecs as streams. Each step is a job of the pool.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use phaseloop::spawn_blocking;
use phaseloop::task::next_tick;

use super::codec::{Codec, Fault, Kind, Step};
use super::options::{Flush, Options};
use crate::callback_futures::in_callbacks_as;
use crate::error::Error;
use crate::events::{Emitter, EventEmitter};
use crate::stream::{
    AsDuplex, Duplex, END, Readable, Transform, Transformed, WeakDuplex, Writable,
};

type Out = Transformed<Vec<u8>>;

/// A stream that packs or unpacks what is written to it. A clone is a handle to the same stream.
/// JavaScript: `zlib.Gzip` and its neighbours.
///
/// A job of the pool does each step, which brings out one chunk at most. The stream unpacks no
/// faster than it is read, so that little input that unpacks to much output (a bomb) takes no more
/// memory than other input.
///
/// # Errors
///
/// The stream is destroyed with `Z_DATA_ERROR` if the input is not of the format, with
/// `Z_BUF_ERROR` if it is cut off, and with `Z_NEED_DICT` if it needs another dictionary.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, run, stream::{Readable, Writable, pipeline}, zlib};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let text = Readable::from_iter([b"some ".to_vec(), b"text".to_vec()]);
///         let sink = Writable::bytes(|bytes: Vec<u8>, done| {
///             assert_eq!(bytes, b"some text");
///             done.ok();
///         });
///         let (pack, unpack) = (zlib::create_gzip(), zlib::create_gunzip());
///         pipeline(&text).through(&pack).through(&unpack).into(&sink.build()).await.unwrap();
///         assert_eq!(pack.bytes_written(), 9);
///     })
/// }
/// ```
pub struct Zlib {
    transform: Transform<Vec<u8>, Vec<u8>>,
    engine: Rc<Engine>,
}

impl Zlib {
    pub(super) fn new(kind: Kind, options: &Options) -> Self {
        options.check(kind);
        let engine = Rc::new(Engine {
            codec: RefCell::new(Some(Codec::new(kind, options))),
            stream: RefCell::default(),
            chunk_size: options.chunk_size,
            room: Cell::new(options.chunk_size),
            flush: options.flush,
            finish_flush: options.finish_flush,
            rejects_garbage: options.reject_garbage_after_end,
            requested: RefCell::default(),
            bytes_written: Cell::new(0),
        });
        let (transforms, flushes) = (engine.clone(), engine.clone());
        let mut builder = Transform::bytes(move |chunk, out| transforms.transform(chunk, out))
            .flush(move |out| flushes.transform(Vec::new(), out))
            .finish_first();
        if let Some(mark) = options.high_water_mark {
            builder = builder.high_water_mark(mark);
        }
        let transform = builder.build();
        transform.emitter().set_class(kind.name());
        let weak = transform.duplex().downgrade();
        engine.stream.replace(Some(weak));
        Self { transform, engine }
    }

    /// Returns the stream as a transform.
    #[must_use]
    pub fn transform(&self) -> &Transform<Vec<u8>, Vec<u8>> {
        &self.transform
    }

    /// Returns the side that the output is read from.
    #[must_use]
    pub fn readable(&self) -> &Readable<Vec<u8>> {
        self.transform.readable()
    }

    /// Returns the side that the input is written to.
    #[must_use]
    pub fn writable(&self) -> &Writable<Vec<u8>> {
        self.transform.writable()
    }

    /// Returns how many bytes of the input are used. JavaScript: `zlib.bytesWritten`.
    #[must_use]
    pub fn bytes_written(&self) -> u64 {
        self.engine.bytes_written.get()
    }

    /// Brings out what was written so far, and calls `callback` after it. JavaScript:
    /// `zlib.flush(kind, callback)`; without a kind, Node takes [`Flush::Full`].
    ///
    /// A stream that was ended brings out all of it by itself; `callback` is called at its end.
    ///
    /// # Examples
    ///
    /// ```
    /// use phaseloop_node::{Exit, run, zlib::{self, Flush}};
    ///
    /// fn main() -> Exit<()> {
    ///     run(async {
    ///         let pack = zlib::create_deflate();
    ///         pack.readable().on_data(|bytes| assert!(!bytes.is_empty()));
    ///         pack.writable().write("a line\n");
    ///         pack.flush(Flush::Sync, || println!("the peer can read the line"));
    ///     })
    /// }
    /// ```
    pub fn flush(&self, kind: Flush, callback: impl FnOnce() + 'static) {
        let writable = self.writable();
        if writable.finished() {
            next_tick(callback);
        } else if writable.ended() {
            self.once(END, move |()| callback());
        } else {
            let at = writable.bytes_written() + writable.length() as u64;
            self.engine.requested.borrow_mut().push_back((at, kind));
            writable.write_with(Vec::new(), move |result| {
                if result.is_ok() {
                    callback();
                }
            });
        }
    }

    /// Ends the stream at once, and drops what has not come out. JavaScript: `zlib.close()`.
    pub fn close(&self) {
        self.transform.duplex().destroy(None);
    }
}

impl Emitter for Zlib {
    fn emitter(&self) -> &EventEmitter {
        self.transform.emitter()
    }
}

crate::weak_this!(Zlib { transform, engine });

impl AsDuplex<Vec<u8>, Vec<u8>> for Zlib {
    fn as_duplex(&self) -> &Duplex<Vec<u8>, Vec<u8>> {
        self.transform.duplex()
    }
}

impl Clone for Zlib {
    fn clone(&self) -> Self {
        Self {
            transform: self.transform.clone(),
            engine: self.engine.clone(),
        }
    }
}

impl fmt::Debug for Zlib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zlib")
            .field("bytes_written", &self.bytes_written())
            .field("stream", &self.transform)
            .finish()
    }
}

/// What the stream and its jobs share.
struct Engine {
    /// `None` while a job has it.
    codec: RefCell<Option<Codec>>,
    /// Weak, because the stream holds the engine.
    stream: RefCell<Option<WeakDuplex<Vec<u8>, Vec<u8>>>>,
    chunk_size: usize,
    /// How many bytes the running chunk of output can still take.
    room: Cell<usize>,
    flush: Flush,
    finish_flush: Flush,
    rejects_garbage: bool,
    /// The flushes that were requested, each with the number of bytes written before it.
    requested: RefCell<VecDeque<(u64, Flush)>>,
    bytes_written: Cell<u64>,
}

/// The input of a write.
struct Input {
    bytes: Vec<u8>,
    used: usize,
    flush: Flush,
}

impl Engine {
    fn stream(&self) -> Option<Duplex<Vec<u8>, Vec<u8>>> {
        self.stream.borrow().as_ref()?.upgrade()
    }

    fn transform(self: &Rc<Self>, bytes: Vec<u8>, out: Out) {
        let flush = self.flush_of(&bytes);
        let input = Input {
            bytes,
            used: 0,
            flush,
        };
        self.start(input, out);
    }

    /// Returns how a chunk is flushed. An empty one may carry a request.
    fn flush_of(&self, bytes: &[u8]) -> Flush {
        let Some(stream) = self.stream() else {
            return self.finish_flush;
        };
        let writable = stream.writable();
        let at = writable.bytes_written();
        let mut flush = self.flush;
        let mut requested = self.requested.borrow_mut();
        let is_request = |(place, _): &&(u64, Flush)| bytes.is_empty() && *place == at;
        if let Some((_, kind)) = requested.front().filter(is_request) {
            flush = *kind;
            requested.pop_front();
        }
        match writable.ended() && writable.length() == bytes.len() {
            true => flush.max(self.finish_flush),
            false => flush,
        }
    }

    /// Starts a step.
    fn start(self: &Rc<Self>, input: Input, out: Out) {
        let codec = self.codec.take();
        let Some(mut codec) = codec else {
            return out.ok();
        };
        let (this, room) = (self.clone(), self.room.get());
        let job = spawn_blocking(move || {
            let mut chunk = vec![0; room];
            let rest = &input.bytes[input.used..];
            let step = codec.step(rest, &mut chunk, input.flush);
            (codec, input, chunk, step)
        });
        in_callbacks_as("ZLIB", async move {
            match job.await {
                Ok((codec, input, chunk, step)) => {
                    this.codec.replace(Some(codec));
                    this.end(input, chunk, step, out);
                }
                Err(error) => out.fail(Error::new(error.to_string())),
            }
        });
    }

    /// Passes the output of a step on, and starts the next step, if there is one.
    fn end(
        self: &Rc<Self>,
        mut input: Input,
        mut chunk: Vec<u8>,
        step: Result<Step, Fault>,
        out: Out,
    ) {
        if out.readable().destroyed() {
            return out.ok();
        }
        let step = match step {
            Ok(step) => step,
            Err(fault) => return out.readable().destroy(Some(fault.into())),
        };
        input.used += step.used;
        self.bytes_written
            .set(self.bytes_written.get() + step.used as u64);
        let is_full = step.written == chunk.len();
        self.room.set(match is_full {
            true => self.chunk_size,
            false => chunk.len() - step.written,
        });
        if !is_full {
            // The memory of a piece is no larger than the piece.
            chunk.truncate(step.written);
            chunk.shrink_to_fit();
        }
        let this = self.clone();
        if is_full {
            return out.push_then(chunk, move |out| match out.readable().destroyed() {
                true => out.ok(),
                false => this.start(input, out),
            });
        }
        if !chunk.is_empty() {
            out.push(chunk);
        }
        if out.readable().destroyed() {
            return out.ok();
        }
        if input.used < input.bytes.len() {
            // The data has ended before its input.
            if self.rejects_garbage {
                return out.readable().destroy(Some(trailing_junk()));
            }
            out.readable().push_end();
        }
        out.ok();
    }
}

pub(super) fn trailing_junk() -> Error {
    let text = "Trailing junk found after the end of the compressed stream";
    Error::type_error(text).coded("ERR_TRAILING_JUNK_AFTER_STREAM_END")
}
