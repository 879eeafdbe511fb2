//! Files as streams.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::future::Future;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::super::callback_futures::in_callbacks;
use super::super::error::Error;
use super::super::events::{Emitter, Event, WeakEmitter};
use super::super::reason::throw;
use super::super::stream::{Done, Readable, Writable, write_chunks_blocking};
use super::flags::{Flags, Opened};
use super::options::{ReadStreamOptions, WriteStreamOptions};
use super::steps;
use crate::sys;

/// The file of a stream is open.
pub const OPEN: Event<()> = Event::new("open");

/// The stream of a file can be used; right after [`OPEN`].
pub const READY: Event<()> = Event::new("ready");

/// Reads a file as a stream.
///
/// It is opened after a tick, by a job of the pool; [`OPEN`] and [`READY`] come when it is. Each chunk is a job of its own, and
/// comes in the poll phase. After the end the file is closed, then [`CLOSE`](super::super::stream::CLOSE) comes.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::node::{Emitter, fs, run, stream::END};
///
/// run(async {
///     let file = fs::create_read_stream("Cargo.toml");
///     file.on_data(|bytes| assert!(!bytes.is_empty()));
///     file.on(END, |()| println!("all of it"));
/// });
/// ```
pub fn create_read_stream(path: impl AsRef<Path>) -> Readable<Vec<u8>> {
    create_read_stream_with(path, ReadStreamOptions::default())
}

/// Reads a file as a stream, with options; otherwise as [`create_read_stream`]. JavaScript: `fs.createReadStream(path, { flags,
/// mode, start, end, highWaterMark })`.
///
/// # Panics
///
/// When no loop runs on this thread. [Throws](super::super::throw) `ERR_OUT_OF_RANGE` if `start` is behind `end`.
///
/// # Examples
///
/// ```
/// use phaseloop::node::{fs::{ReadStreamOptions, create_read_stream_with}, run};
///
/// run(async {
///     let options = ReadStreamOptions { start: 1, end: 7, ..Default::default() };
///     let name = create_read_stream_with("Cargo.toml", options);
///     name.on_data(|bytes| assert_eq!(bytes, b"package"));
/// });
/// ```
pub fn create_read_stream_with(
    path: impl AsRef<Path>,
    options: ReadStreamOptions,
) -> Readable<Vec<u8>> {
    let ReadStreamOptions { start, end, .. } = options;
    if start > end {
        let text = format!(
            "The value of \"start\" is out of range. It must be <= \"end\" (here: {end}). Received {start}"
        );
        throw(Error::range_error(text).coded("ERR_OUT_OF_RANGE"));
    }
    let stream = Rc::new(FileStream::starting_at(start));
    let [opens, reads, closes] = [(); 3].map(|()| stream.clone());
    let path = path.as_ref().to_owned();
    let readable = Readable::bytes()
        .high_water_mark(options.high_water_mark)
        .construct(move |done| opens.open(path, options.flags, options.mode, done))
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
    stream.tells(&readable);
    readable
}

/// Writes a file as a stream; it is made, or emptied.
///
/// It is opened after a tick, by a job of the pool; [`OPEN`] and [`READY`] come when it is, and what was written before waits
/// for that. After the end the file is closed, then [`CLOSE`](super::super::stream::CLOSE) comes.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::node::{fs, run, stream::{Readable, pipeline}};
///
/// run(async {
///     let path = std::env::temp_dir().join(format!("phaseloop-doc-{}", std::process::id()));
///     let lines = Readable::from_iter([b"one\n".to_vec(), b"two\n".to_vec()]);
///     pipeline(&lines).into(&fs::create_write_stream(&path)).await.unwrap();
///     assert_eq!(fs::promises::read_file(&path).await.unwrap(), b"one\ntwo\n");
///     fs::promises::unlink(&path).await.unwrap();
/// });
/// ```
pub fn create_write_stream(path: impl AsRef<Path>) -> Writable<Vec<u8>> {
    create_write_stream_with(path, WriteStreamOptions::default())
}

/// Writes a file as a stream, with options: to append to it, or into the middle of it. Otherwise as [`create_write_stream`].
/// JavaScript: `fs.createWriteStream(path, { flags, mode, start, highWaterMark, flush })`.
///
/// # Panics
///
/// When no loop runs on this thread.
///
/// # Examples
///
/// ```
/// use phaseloop::node::{fs::{self, WriteStreamOptions}, run, stream::finished};
///
/// run(async {
///     let path = std::env::temp_dir().join(format!("phaseloop-doc-part-{}", std::process::id()));
///     fs::promises::write_file(&path, "0123456789").await.unwrap();
///     let options = WriteStreamOptions { flags: "r+".into(), start: 3, ..Default::default() };
///     let middle = fs::create_write_stream_with(&path, options);
///     middle.end_chunk("abc");
///     finished(&middle).await.unwrap();
///     assert_eq!(fs::promises::read_file(&path).await.unwrap(), b"012abc6789");
///     fs::promises::unlink(&path).await.unwrap();
/// });
/// ```
pub fn create_write_stream_with(
    path: impl AsRef<Path>,
    options: WriteStreamOptions,
) -> Writable<Vec<u8>> {
    let stream = Rc::new(FileStream {
        flushes: options.flush,
        ..FileStream::starting_at(options.start)
    });
    let [opens, writes, writes_all, closes] = [(); 4].map(|()| stream.clone());
    let path = path.as_ref().to_owned();
    let writable = Writable::bytes(move |bytes: Vec<u8>, done| {
        writes.write(vec![bytes], done);
    })
    .write_all(move |chunks, done| writes_all.write(chunks, done))
    .high_water_mark(options.high_water_mark)
    .construct(move |done| opens.open(path, options.flags, options.mode, done))
    .destroy(move |error, done| closes.close(error, done))
    .build();
    writable.emitter().set_class("WriteStream");
    stream.tells(&writable);
    writable
}

/// Writes at offsets: the system's position stays where it is.
struct WriterAt<'a> {
    file: &'a File,
    offset: u64,
}

impl Write for WriterAt<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let size = sys::fs::write_at(self.file, bytes, self.offset)?;
        self.offset += size as u64;
        Ok(size)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a stream of a file shares with its jobs.
#[derive(Default)]
struct FileStream {
    file: RefCell<Option<Opened>>,
    emitter: RefCell<Option<WeakEmitter>>,
    /// Where the stream began.
    start: u64,
    /// Where it is now.
    position: Cell<u64>,
    /// The disk is to have everything before the file is closed.
    flushes: bool,
    /// It is being read or written.
    is_busy: Cell<bool>,
    /// What closes it when it no longer is.
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

    /// Where a job reads or writes. `None`: at the file's own position, so that what cannot seek can be streamed from its
    /// beginning.
    fn offset(&self) -> Option<u64> {
        (self.start > 0).then(|| self.position.get())
    }

    fn advance(&self, size: usize) {
        self.position.set(self.position.get() + size as u64);
    }

    /// Whose events tell of the opening.
    fn tells(&self, stream: &impl Emitter) {
        self.emitter.replace(Some(stream.emitter().downgrade()));
    }

    fn open(self: Rc<Self>, path: PathBuf, flags: Flags, mode: u32, done: Done) {
        in_callbacks(async move {
            match flags.open(&path, mode).await {
                Ok(file) => {
                    self.file.replace(Some(file));
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

    /// Does something with the file, then what that returns. Without one, nothing.
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

    /// Reads the next chunk, by a job of the pool.
    fn read(self: &Rc<Self>, readable: &Readable<Vec<u8>>, size: usize) {
        let (this, readable) = (self.clone(), readable.clone());
        self.with_file(|file| async move {
            let read = steps::read(&file, size, this.offset()).await;
            move || match read {
                // Its reader is gone.
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

    /// Writes what has queued up, as one job of the pool.
    fn write(self: &Rc<Self>, chunks: Vec<Vec<u8>>, done: Done) {
        let offset = self.offset();
        self.advance(chunks.iter().map(Vec::len).sum());
        self.with_file(|file| async move {
            let written = steps::with_file("write_at", &file, move |file| match offset {
                Some(offset) => write_chunks_blocking(WriterAt { file, offset }, &chunks),
                None => write_chunks_blocking(file, &chunks),
            });
            let written = written.await;
            move || done.call(written.map_err(Error::from))
        });
    }

    /// Closes the file, once no job uses it.
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
        let Some(file) = self.file.take() else {
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
