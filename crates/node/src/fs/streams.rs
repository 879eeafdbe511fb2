//! Files as streams.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::future::Future;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::flags::{Flags, Opened};
use super::handle::FileHandle;
use super::options::{ReadStreamOptions, WriteStreamOptions};
use super::steps;
use crate::callback_futures::in_callbacks;
use crate::error::Error;
use crate::events::{Emitter, Event, WeakEmitter};
use crate::reason::throw;
use crate::stream::{Done, Readable, Writable, add_abort_signal, write_chunks_blocking};
use phaseloop::extension::files;

/// The file of a stream is open. JavaScript: `'open'`.
pub const OPEN: Event<()> = Event::new("open");

/// The stream of a file is ready for use; emitted right after [`OPEN`]. JavaScript: `'ready'`.
pub const READY: Event<()> = Event::new("ready");

/// Returns a stream that reads a file. JavaScript: `fs.createReadStream(path)`.
///
/// A job of the pool opens the file, one tick after this call; [`OPEN`] and [`READY`] are emitted
/// when it is open. Each chunk is a job of its own, and is emitted in the poll phase. After EOF the
/// file is closed, then [`CLOSE`](crate::stream::CLOSE) is emitted.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Emitter, Exit, fs, run, stream::END};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let file = fs::create_read_stream("Cargo.toml");
///         file.on_data(|bytes| assert!(!bytes.is_empty()));
///         file.on(END, |()| println!("all of it"));
///     })
/// }
/// ```
pub fn create_read_stream(path: impl AsRef<Path>) -> Readable<Vec<u8>> {
    create_read_stream_with(path, ReadStreamOptions::default())
}

/// Returns a stream that reads a file, with options; see [`create_read_stream`]. JavaScript:
/// `fs.createReadStream(path, { flags, mode, start, end, highWaterMark, autoClose, signal })`.
///
/// # Panics
///
/// When no loop runs on this thread. [Throws](crate::throw) `ERR_OUT_OF_RANGE` if `start` is
/// greater than `end`.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, fs::{ReadStreamOptions, create_read_stream_with}, run};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let options = ReadStreamOptions { start: 1, end: 7, ..Default::default() };
///         let name = create_read_stream_with("Cargo.toml", options);
///         name.on_data(|bytes| assert_eq!(bytes, b"package"));
///     })
/// }
/// ```
pub fn create_read_stream_with(
    path: impl AsRef<Path>,
    options: ReadStreamOptions,
) -> Readable<Vec<u8>> {
    reader(FileSource::Path(path.as_ref().to_owned()), options)
}

/// Where the file of a stream comes from.
pub(super) enum FileSource {
    Path(PathBuf),
    Handle(FileHandle),
}

pub(super) fn reader(source: FileSource, options: ReadStreamOptions) -> Readable<Vec<u8>> {
    let ReadStreamOptions { start, end, .. } = options;
    if start > end {
        let text = format!(
            "The value of \"start\" is out of range. It must be <= \"end\" (here: {end}). Received {start}"
        );
        throw(Error::range_error(text).coded("ERR_OUT_OF_RANGE"));
    }
    let stream = Rc::new(FileStream::starting_at(start));
    let [opens, reads, closes] = [(); 3].map(|()| stream.clone());
    let readable = Readable::bytes()
        .high_water_mark(options.high_water_mark)
        .auto_destroy(options.auto_close)
        .construct(move |done| opens.open(source, options.flags, options.mode, done))
        .read(move |readable, size| {
            let left = end.saturating_add(1).saturating_sub(reads.position.get());
            let size = usize::try_from(left).map_or(size, |left| size.min(left));
            if size == 0 {
                return readable.push_end();
            }
            reads.read(readable, size);
        })
        .destroy(move |error, done| closes.close(error, done))
        .build();
    readable.emitter().set_class("ReadStream");
    stream.emits_on(&readable);
    if let Some(signal) = &options.signal {
        add_abort_signal(signal, &readable);
    }
    readable
}

/// Returns a stream that writes a file, which is created or truncated. JavaScript:
/// `fs.createWriteStream(path)`.
///
/// A job of the pool opens the file, one tick after this call; [`OPEN`] and [`READY`] are emitted
/// when it is open, and earlier writes wait for that. After the end the file is closed, then
/// [`CLOSE`](crate::stream::CLOSE) is emitted.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, fs, run, stream::{Readable, pipeline}};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let path = std::env::temp_dir().join(format!("phaseloop-doc-{}", std::process::id()));
///         let lines = Readable::from_iter([b"one\n".to_vec(), b"two\n".to_vec()]);
///         pipeline(&lines).into(&fs::create_write_stream(&path)).await.unwrap();
///         assert_eq!(fs::promises::read_file(&path).await.unwrap(), b"one\ntwo\n");
///         fs::promises::unlink(&path).await.unwrap();
///     })
/// }
/// ```
pub fn create_write_stream(path: impl AsRef<Path>) -> Writable<Vec<u8>> {
    create_write_stream_with(path, WriteStreamOptions::default())
}

/// Returns a stream that writes a file, with options: to append to it, or to write into the middle
/// of it; see [`create_write_stream`]. JavaScript: `fs.createWriteStream(path, { flags, mode,
/// start, highWaterMark, flush })`.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop_node::{Exit, fs::{self, WriteStreamOptions}, run, stream::finished};
///
/// fn main() -> Exit<()> {
///     run(async {
///         let name = format!("phaseloop-doc-part-{}", std::process::id());
///         let path = std::env::temp_dir().join(name);
///         fs::promises::write_file(&path, "0123456789").await.unwrap();
///         let options = WriteStreamOptions { flags: "r+".into(), start: 3, ..Default::default() };
///         let middle = fs::create_write_stream_with(&path, options);
///         middle.end("abc");
///         finished(&middle).await.unwrap();
///         assert_eq!(fs::promises::read_file(&path).await.unwrap(), b"012abc6789");
///         fs::promises::unlink(&path).await.unwrap();
///     })
/// }
/// ```
pub fn create_write_stream_with(
    path: impl AsRef<Path>,
    options: WriteStreamOptions,
) -> Writable<Vec<u8>> {
    writer(FileSource::Path(path.as_ref().to_owned()), options)
}

pub(super) fn writer(source: FileSource, options: WriteStreamOptions) -> Writable<Vec<u8>> {
    let stream = Rc::new(FileStream {
        flushes: options.flush,
        ..FileStream::starting_at(options.start)
    });
    let [opens, writes, writes_all, closes] = [(); 4].map(|()| stream.clone());
    let writable = Writable::bytes(move |bytes: Vec<u8>, done| {
        writes.write(vec![bytes], done);
    })
    .write_all(move |chunks, done| writes_all.write(chunks, done))
    .high_water_mark(options.high_water_mark)
    .auto_destroy(options.auto_close)
    .construct(move |done| opens.open(source, options.flags, options.mode, done))
    .destroy(move |error, done| closes.close(error, done))
    .build();
    writable.emitter().set_class("WriteStream");
    stream.emits_on(&writable);
    if let Some(signal) = &options.signal {
        add_abort_signal(signal, &writable);
    }
    writable
}

/// Writes at offsets; the position of the file descriptor does not move.
struct WriterAt<'a> {
    file: &'a File,
    offset: u64,
}

impl Write for WriterAt<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let size = files::write_at(self.file, bytes, self.offset)?;
        self.offset += size as u64;
        Ok(size)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The state that the stream of a file shares with its jobs.
#[derive(Default)]
struct FileStream {
    file: RefCell<Option<Opened>>,
    /// The handle of the program, if the stream did not open the file.
    handle: RefCell<Option<FileHandle>>,
    emitter: RefCell<Option<WeakEmitter>>,
    /// The offset at which the stream started.
    start: u64,
    /// The current offset.
    position: Cell<u64>,
    /// Whether the contents must be on disk before the file is closed.
    flushes: bool,
    /// Whether a job reads or writes the file.
    is_busy: Cell<bool>,
    /// Closes the file when the running job ends.
    close: RefCell<Option<Box<dyn FnOnce()>>>,
}

impl FileStream {
    fn starting_at(start: u64) -> Self {
        Self {
            start,
            position: Cell::new(start),
            ..Self::default()
        }
    }

    /// Returns the offset of the next job. `None` means the current position of the file, so that a
    /// file that cannot seek can be streamed from its start.
    fn offset(&self) -> Option<u64> {
        (self.start > 0).then(|| self.position.get())
    }

    fn advance(&self, size: usize) {
        self.position.set(self.position.get() + size as u64);
    }

    /// Sets the stream that emits the events of the open.
    fn emits_on(&self, stream: &impl Emitter) {
        self.emitter.replace(Some(stream.emitter().downgrade()));
    }

    fn open(self: Rc<Self>, source: FileSource, flags: Flags, mode: u32, done: Done) {
        let path = match source {
            FileSource::Path(path) => path,
            FileSource::Handle(handle) => {
                let opened = handle.opened("open");
                self.handle.replace(Some(handle));
                return done.call(opened.map(|file| _ = self.file.replace(Some(file))));
            }
        };
        in_callbacks(async move {
            match flags.open(&path, mode).await {
                Ok(file) => {
                    self.file.replace(Some(file));
                    // The construction completes on a tick, after the two events.
                    done.ok();
                    let emitter = self
                        .emitter
                        .borrow()
                        .as_ref()
                        .and_then(WeakEmitter::upgrade);
                    if let Some(emitter) = emitter {
                        emitter.emit(OPEN, ());
                        emitter.emit(READY, ());
                    }
                }
                Err(error) => done.fail(error),
            }
        });
    }

    /// Runs `work` with the file, then the closure that it returns. Does nothing if the file is not
    /// open.
    fn with_file<F, G>(self: &Rc<Self>, work: impl FnOnce(Opened) -> F)
    where
        F: Future<Output = G> + 'static,
        G: FnOnce(),
    {
        let file = self.file.borrow().clone();
        let Some(file) = file else { return };
        self.is_busy.set(true);
        let (this, work) = (self.clone(), work(file));
        in_callbacks(async move {
            let end = work.await;
            this.is_busy.set(false);
            end();
            let close = this.close.take();
            if let Some(close) = close {
                close();
            }
        });
    }

    /// Reads the next chunk in a job of the pool.
    fn read(self: &Rc<Self>, readable: &Readable<Vec<u8>>, size: usize) {
        let (this, readable) = (self.clone(), readable.clone());
        self.with_file(|file| async move {
            let read = steps::read(&file, size, this.offset()).await;
            move || match read {
                // The stream was destroyed while the job ran; the chunk is dropped.
                _ if readable.destroyed() => {}
                Ok(chunk) if chunk.is_empty() => readable.push_end(),
                Ok(chunk) => {
                    this.advance(chunk.len());
                    readable.push(chunk);
                }
                Err(error) => readable.destroy(Some(error.into())),
            }
        });
    }

    /// Writes all buffered chunks in one job of the pool.
    fn write(self: &Rc<Self>, chunks: Vec<Vec<u8>>, done: Done) {
        let offset = self.offset();
        self.advance(chunks.iter().map(Vec::len).sum());
        self.with_file(|file| async move {
            let written = steps::with_file("write_at", &file, move |file| match offset {
                Some(offset) => write_chunks_blocking(WriterAt { file, offset }, &chunks),
                None => files::at_position(file, || write_chunks_blocking(file, &chunks)),
            });
            let written = written.await;
            move || done.call(written.map_err(Error::from))
        });
    }

    /// Closes the file when no job uses it.
    fn close(self: Rc<Self>, error: Option<Error>, done: Done) {
        if self.is_busy.get() {
            let this = self.clone();
            let later = Box::new(move || this.close_now(error, done));
            let before = self.close.replace(Some(later));
            return drop(before);
        }
        self.close_now(error, done);
    }

    fn close_now(&self, error: Option<Error>, done: Done) {
        let mut file = self.file.take();
        if let Some(handle) = self.handle.take() {
            // The handle has the file, unless the program has closed it.
            file = handle.take();
        }
        let Some(file) = file else {
            return done.pass(error);
        };
        let flushes = self.flushes;
        in_callbacks(async move {
            let flushed = match flushes {
                true => steps::with_file("sync_all", &file, File::sync_all).await,
                false => Ok(()),
            };
            let closed = steps::close(file).await;
            done.pass(error.or(flushed.and(closed).err().map(Error::from)));
        });
    }
}
