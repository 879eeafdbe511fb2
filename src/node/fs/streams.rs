//! Files as streams.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;

use futures::io::AsyncRead;

use super::super::callbacks::in_callbacks;
use super::super::error::Error;
use super::super::events::{Emitter, Event, WeakEmitter};
use super::super::stream::{Done, Readable, Writable, write_chunks_blocking};
use crate::fs::{File, OpenOptions};

/// The file of a stream is open.
pub const OPEN: Event<()> = Event::new("open");

/// The stream of a file can be used; right after [`OPEN`].
pub const READY: Event<()> = Event::new("ready");

/// How much of a file is read at once.
const READ_SIZE: usize = 64 * 1024;

/// Which part of a file is read as a stream, and how much at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadStreamOptions {
    /// The first byte.
    pub start: u64,
    /// The last byte, which is read as well; `u64::MAX` for all there is.
    pub end: u64,
    /// How many bytes are read at once, and kept.
    pub high_water_mark: usize,
}

impl Default for ReadStreamOptions {
    /// All of the file, 64 KiB at once.
    fn default() -> Self {
        Self {
            start: 0,
            end: u64::MAX,
            high_water_mark: READ_SIZE,
        }
    }
}

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

/// The same for a part of the file.
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn create_read_stream_with(
    path: impl AsRef<Path>,
    options: ReadStreamOptions,
) -> Readable<Vec<u8>> {
    let opened = Rc::new(Opened::default());
    let [opens, reads, closes] = [(); 3].map(|()| opened.clone());
    let path = path.as_ref().to_owned();
    let mut how = OpenOptions::new();
    how.read(true);
    let position = Rc::new(Cell::new(options.start));
    let readable = Readable::bytes()
        .high_water_mark(options.high_water_mark)
        .construct(move |done| opens.open(path, how, done))
        .read(move |readable, size| {
            let left = options.end.saturating_add(1).saturating_sub(position.get());
            let size = usize::try_from(left).map_or(size, |left| size.min(left));
            if size == 0 {
                return readable.push_end();
            }
            let (readable, position) = (readable.clone(), position.clone());
            reads.with_file(move |file| async move {
                let read = read(&file, size, position.get()).await;
                move || match read {
                    // Nobody waits for it any more.
                    _ if readable.destroyed() => {}
                    Ok(chunk) if chunk.is_empty() => readable.push_end(),
                    Ok(chunk) => {
                        position.set(position.get() + chunk.len() as u64);
                        readable.push(chunk);
                    }
                    Err(error) => readable.destroy(Some(Error::of_descriptor(error, "read"))),
                }
            });
        })
        .destroy(move |error, done| closes.close(error, done))
        .build();
    readable.emitter().set_class("ReadStream");
    opened.tells(&readable);
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
    let mut how = OpenOptions::new();
    how.write(true).create(true).truncate(true);
    create_write_stream_with(path, how)
}

/// The same for a file that is opened in another way, to append to it for example. Node's `flags`.
///
/// # Panics
///
/// When no loop runs on this thread.
pub fn create_write_stream_with(path: impl AsRef<Path>, how: OpenOptions) -> Writable<Vec<u8>> {
    let opened = Rc::new(Opened::default());
    let [opens, writes, writes_all, closes] = [(); 4].map(|()| opened.clone());
    let path = path.as_ref().to_owned();
    let writable = Writable::bytes(move |bytes: Vec<u8>, done| {
        writes.write(vec![bytes], done);
    })
    .write_all(move |chunks, done| writes_all.write(chunks, done))
    .construct(move |done| opens.open(path, how, done))
    .destroy(move |error, done| closes.close(error, done))
    .build();
    writable.emitter().set_class("WriteStream");
    opened.tells(&writable);
    writable
}

/// Reads up to `size` bytes; from the current position if the file cannot seek.
async fn read(file: &File, size: usize, position: u64) -> io::Result<Vec<u8>> {
    let mut chunk = vec![0; size];
    let count = match file.read_at(&mut chunk, position).await {
        Err(error) if error.kind() == io::ErrorKind::NotSeekable => {
            poll_fn(|cx| Pin::new(&mut &*file).poll_read(cx, &mut chunk)).await?
        }
        result => result?,
    };
    chunk.truncate(count);
    Ok(chunk)
}

/// The file of a stream.
#[derive(Default)]
struct Opened {
    file: RefCell<Option<Rc<File>>>,
    emitter: RefCell<Option<WeakEmitter>>,
    /// It is being read or written.
    is_busy: Cell<bool>,
    /// What closes it when it no longer is.
    close: RefCell<Option<Box<dyn FnOnce()>>>,
}

impl Opened {
    /// Whose events tell of the opening.
    fn tells(&self, stream: &impl Emitter) {
        self.emitter.replace(Some(stream.emitter().downgrade()));
    }

    fn open(self: Rc<Self>, path: PathBuf, how: OpenOptions, done: Done) {
        in_callbacks(async move {
            match how.open(path).await {
                Ok(file) => {
                    self.file.replace(Some(Rc::new(file)));
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
    fn with_file<F, G>(self: &Rc<Self>, work: impl FnOnce(Rc<File>) -> F)
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

    /// Writes what has queued up, as one job of the pool.
    fn write(self: &Rc<Self>, chunks: Vec<Vec<u8>>, done: Done) {
        self.with_file(|file| async move {
            let write = move |file: &std::fs::File| write_chunks_blocking(file, &chunks);
            let written = file.write_with(write).await;
            move || done.call(written.map_err(|error| Error::of_descriptor(error, "write")))
        });
    }

    /// Closes the file, once nobody works with it.
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
        let file = self.file.take().map(Rc::try_unwrap);
        let Some(Ok(file)) = file else {
            return done.pass(error);
        };
        in_callbacks(async move {
            let closed = file.close().await;
            done.pass(error.or(closed.err().map(Error::from)));
        });
    }
}
